"""A key-value store with nested transactions."""

import sys

WORDS = {"SET": 3, "GET": 2, "UNSET": 2, "COUNT": 2, "BEGIN": 1, "ROLLBACK": 1, "COMMIT": 1, "KEYS": 1, "END": 1}


def main() -> int:
    data = {}
    saved = []
    for line in sys.stdin.read().split("\n"):
        words = line.split()
        if not words:
            continue
        command = words[0].upper()
        if WORDS.get(command) != len(words):
            print("ERROR", line.strip())
        elif command == "SET":
            data[words[1]] = words[2]
        elif command == "GET":
            print(data.get(words[1], "NULL"))
        elif command == "UNSET":
            data.pop(words[1], None)
        elif command == "COUNT":
            print(sum(value == words[1] for value in data.values()))
        elif command == "KEYS":
            print(" ".join(sorted(data)) or "NONE")
        elif command == "BEGIN":
            saved.append(dict(data))
        elif command == "END":
            break
        elif not saved:
            print("NO TRANSACTION")
        elif command == "ROLLBACK":
            data = saved.pop()
        else:
            saved.pop()
    print("BYE", len(saved[0] if saved else data))
    return len(saved)


if __name__ == "__main__":
    sys.exit(main())
