def parse_csv_line(line):
    """Return the fields of one CSV record, with quotes taken off."""
    fields = []
    position = 0
    while True:
        if line.startswith('"', position):
            field, position = _quoted(line, position + 1)
        else:
            end = line.find(",", position)
            end = len(line) if end < 0 else end
            field, position = line[position:end], end
        fields.append(field)
        if position == len(line):
            return fields
        if line[position] != ",":
            raise ValueError(f"expected a comma at position {position}")
        position += 1


def _quoted(line, position):
    """Return the value of the quoted field whose text starts here, and where its closing quote ends."""
    pieces = []
    while True:
        end = line.find('"', position)
        if end < 0:
            raise ValueError("a quoted field is not closed")
        pieces.append(line[position:end])
        if not line.startswith('""', end):
            return '"'.join(pieces), end + 1
        position = end + 2
