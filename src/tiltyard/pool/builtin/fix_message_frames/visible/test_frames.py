def test_umlaut():
    assert encode("für") == "4:für,".encode()
    assert Decoder().feed("4:für,".encode()) == ["für"]


def test_piece_ends_in_the_digits():
    decoder = Decoder()
    assert decoder.feed(b"1") == []
    assert decoder.feed(b"1:hello world,") == ["hello world"]


def test_two_messages():
    assert Decoder().feed(b"2:ab,3:cde,") == ["ab", "cde"]
