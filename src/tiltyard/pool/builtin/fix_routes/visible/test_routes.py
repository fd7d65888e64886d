def router():
    r = Router()
    r.add("/users/<name>", "profile")
    r.add("/users/new", "signup")
    r.add("/users/<id:int>", "user")
    r.add("/files/<name>", "file")
    return r


def test_encoded_slash():
    assert router().match("/files/a%2Fb.txt") == ("file", {"name": "a/b.txt"})
    assert router().url_for("file", name="a/b.txt") == "/files/a%2Fb.txt"


def test_order_of_registration_does_not_matter():
    assert router().match("/users/new") == ("signup", {})
    assert router().match("/users/12") == ("user", {"id": 12})
