def test_encode_counts_bytes():
    assert encode("naïve") == b"6:na\xc3\xafve,"
    assert encode("日本") == b"6:\xe6\x97\xa5\xe6\x9c\xac,"
    assert encode("😀") == b"4:\xf0\x9f\x98\x80,"


def test_encode_ascii():
    assert encode("hello") == b"5:hello,"
    assert encode("") == b"0:,"
    assert encode("a,b:c") == b"5:a,b:c,"


def test_byte_by_byte():
    decoder = Decoder()
    data = encode("grün") + encode("") + encode("x" * 12)
    got = [message for n in range(len(data)) for message in decoder.feed(data[n : n + 1])]
    assert got == ["grün", "", "x" * 12]
    assert decoder.pending == 0


def test_pieces_of_every_size():
    texts = ["a", "", "zwölf Boxkämpfer", "0:,", "é" * 50, "end"]
    data = b"".join(encode(text) for text in texts)
    for size in (2, 3, 5, 7, 11, 64):
        decoder = Decoder()
        got = []
        for at in range(0, len(data), size):
            got += decoder.feed(data[at : at + size])
        assert got == texts


def test_many_messages_in_one_piece():
    assert Decoder().feed(b"1:a,1:b,0:,1:c,1:") == ["a", "b", "", "c"]


def test_empty_message_alone():
    assert Decoder().feed(b"0:,") == [""]


def test_empty_piece():
    decoder = Decoder()
    assert decoder.feed(b"") == []
    assert decoder.feed(b"3:ab") == []
    assert decoder.feed(b"") == []
    assert decoder.feed(b"c,") == ["abc"]


def test_pending():
    decoder = Decoder()
    assert decoder.feed(b"1:a,10:abc") == ["a"]
    assert decoder.pending == 6


def test_piece_ends_right_after_the_digits():
    decoder = Decoder()
    assert decoder.feed(b"5") == []
    assert decoder.feed(b":hel") == []
    assert decoder.feed(b"lo") == []
    assert decoder.feed(b",") == ["hello"]


def test_limit_as_soon_as_the_length_is_there():
    raises(FrameError, Decoder(limit=10).feed, b"11:")
    raises(FrameError, Decoder(limit=10).feed, b"11:abc")
    raises(FrameError, Decoder().feed, b"9999999999:")


def test_limit_before_the_colon():
    raises(FrameError, Decoder(limit=10).feed, b"11")
    decoder = Decoder(limit=500)
    assert decoder.feed(b"50") == []
    raises(FrameError, decoder.feed, b"1")
    raises(FrameError, Decoder().feed, b"1" * 5000)


def test_exactly_the_limit():
    assert Decoder(limit=10).feed(b"10:0123456789,") == ["0123456789"]
    decoder = Decoder(limit=0)
    assert decoder.feed(b"0:,0:,") == ["", ""]
    raises(FrameError, decoder.feed, b"1")


def test_malformed_lengths():
    for data in (b":", b":a,", b"-1:", b"+1:a,", b" 1:a,", b"1 :a,", b"01:a,", b"00:,", b"x", b"1x:", "٣:abc,".encode()):
        raises(FrameError, Decoder().feed, data)


def test_malformed_length_is_seen_before_the_colon():
    raises(FrameError, Decoder().feed, b"a")
    raises(FrameError, Decoder().feed, b"00")
    decoder = Decoder()
    assert decoder.feed(b"0") == []
    raises(FrameError, decoder.feed, b"5")


def test_no_comma():
    raises(FrameError, Decoder().feed, b"3:abcd")
    raises(FrameError, Decoder().feed, b"0:x")
    decoder = Decoder()
    assert decoder.feed(b"3:abc") == []
    raises(FrameError, decoder.feed, b";")


def test_not_utf8():
    raises(FrameError, Decoder().feed, b"1:\xff,")
    raises(FrameError, Decoder().feed, b"1:\xc3,")


def test_broken_for_good():
    decoder = Decoder()
    raises(FrameError, decoder.feed, b"1:a,x")
    raises(FrameError, decoder.feed, b"1:a,")
    raises(FrameError, decoder.feed, b"")


def test_other_decoders_are_not_concerned():
    raises(FrameError, Decoder().feed, b"x")
    assert Decoder().feed(b"1:a,") == ["a"]


def test_limit_that_is_meant_if_none_is_given():
    assert Decoder().feed(b"65536:") == []
    raises(FrameError, Decoder().feed, b"65537")
