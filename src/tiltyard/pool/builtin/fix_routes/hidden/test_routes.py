from web import url
from web.pattern import PatternError


def router(*patterns):
    r = Router()
    for text in patterns:
        r.add(text, text)
    return r


def test_encoded_slashes():
    r = router("/<a>/<b>", "/<a>")
    assert r.match("/x%2Fy/z") == ("/<a>/<b>", {"a": "x/y", "b": "z"})
    assert r.match("/x%2fy%2Fz") == ("/<a>", {"a": "x/y/z"})


def test_encoded_question_mark_and_percent():
    r = router("/<a>")
    assert r.match("/what%3F") == ("/<a>", {"a": "what?"})
    assert r.match("/100%25") == ("/<a>", {"a": "100%"})
    assert r.match("/%252F") == ("/<a>", {"a": "%2F"})


def test_query_and_fragment_are_no_part_of_the_path():
    r = router("/a/<b>")
    assert r.match("/a/x?c=/d/e") == ("/a/<b>", {"b": "x"})
    assert r.match("/a/x#y?z") == ("/a/<b>", {"b": "x"})
    assert r.match("//a///x/") == ("/a/<b>", {"b": "x"})


def test_segments_are_utf8():
    assert url.segments("/caf%C3%A9/%E2%82%AC+") == ["café", "€+"]


def test_url_for_quotes_slashes():
    r = router("/d/<name>/end")
    assert r.url_for("/d/<name>/end", name="a/b") == "/d/a%2Fb/end"
    assert r.url_for("/d/<name>/end", name="50% ?#é") == "/d/50%25%20%3F%23%C3%A9/end"


def test_url_for_and_match_agree():
    r = router("/f/<name>", "/g/<name>/<n:int>", "/h/<all:rest>")
    for name in ("plain", "a/b", "/", "%2F", "a b+c", "ü?#&=", "..."):
        assert r.match(r.url_for("/f/<name>", name=name)) == ("/f/<name>", {"name": name})
        assert r.match(r.url_for("/g/<name>/<n:int>", name=name, n=7)) == ("/g/<name>/<n:int>", {"name": name, "n": 7})
        assert r.match(r.url_for("/h/<all:rest>", all=[name, "x"])) == ("/h/<all:rest>", {"all": [name, "x"]})


def test_url_for_without_a_pattern():
    r = router("/a/<b>")
    raises(KeyError, r.url_for, "/a/<b>")
    raises(KeyError, r.url_for, "/a/<b>", c="1")
    raises(KeyError, r.url_for, "other", b="1")


def test_int_is_digits_only():
    r = router("/u/<id:int>")
    assert r.match("/u/007") == ("/u/<id:int>", {"id": 7})
    assert r.match("/u/0") == ("/u/<id:int>", {"id": 0})
    for text in ("12abc", "1.5", "-1", "+1", "1%20", "1_000", "%D9%A1%D9%A2", "%C2%B2", "12%0A"):
        assert r.match("/u/" + text) is None


def test_no_number_goes_to_the_name():
    r = router("/u/<id:int>", "/u/<name>")
    assert r.match("/u/12abc") == ("/u/<name>", {"name": "12abc"})
    assert r.match("/u/12") == ("/u/<id:int>", {"id": 12})


def test_static_first():
    r = router("/a/<x:rest>", "/a/<x>", "/a/<x:int>", "/a/5")
    assert r.match("/a/5") == ("/a/5", {})
    assert r.match("/a/6") == ("/a/<x:int>", {"x": 6})
    assert r.match("/a/b") == ("/a/<x>", {"x": "b"})
    assert r.match("/a/b/c") == ("/a/<x:rest>", {"x": ["b", "c"]})
    assert r.match("/a") is None


def test_leftmost_difference_decides():
    r = router("/<x>/b/c", "/a/<y>/<z>")
    assert r.match("/a/b/c") == ("/a/<y>/<z>", {"y": "b", "z": "c"})
    assert r.match("/q/b/c") == ("/<x>/b/c", {"x": "q"})
    r = router("/a/<y:rest>", "/<x>/b")
    assert r.match("/a/b") == ("/a/<y:rest>", {"y": ["b"]})


def test_next_best_if_the_best_does_not_fit():
    r = router("/<x>/b", "/a/c")
    assert r.match("/a/b") == ("/<x>/b", {"x": "a"})


def test_first_registered_among_equals():
    r = Router()
    r.add("/z/<one>", "first")
    r.add("/z/<two>", "second")
    assert r.match("/z/1") == ("first", {"one": "1"})
    assert r.url_for("second", two=2) == "/z/2"


def test_root():
    r = router("/", "/<x>")
    assert r.match("/") == ("/", {})
    assert r.match("") == ("/", {})
    assert r.url_for("/") == "/"


def test_query():
    assert url.query("/s?q=a=b&n=1&n=2") == {"q": ["a=b"], "n": ["1", "2"]}
    assert url.query("/s?q=&r") == {"q": [""], "r": [""]}
    assert url.query("/s?a+b=c%20d%26&&e==#f=g") == {"a b": ["c d&"], "e": ["="]}
    assert url.query("/s?x=%C3%BC?") == {"x": ["ü?"]}


def test_no_query():
    assert url.query("/s") == {}
    assert url.query("/s?") == {}
    assert url.query("/s#a?b=c") == {}


def test_bad_patterns():
    for text in ("/<a", "/a>", "/<a:float>", "/<a>/<a>", "/<a:rest>/b", "/x<a>", "/<>"):
        raises(PatternError, Router().add, text, "p")


def test_url_for_takes_exactly_the_names_of_a_pattern():
    r = Router()
    r.add("/items/<name>", "item")
    r.add("/items/<name>/<n:int>", "item")
    assert r.url_for("item", name="a", n=3) == "/items/a/3"
    assert r.url_for("item", name="a") == "/items/a"
    raises(KeyError, r.url_for, "item")
    raises(KeyError, r.url_for, "item", n=3)
    raises(KeyError, r.url_for, "item", name="a", n=3, more="x")
