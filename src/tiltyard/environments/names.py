"""Names of packages: what tests don't need, and which distribution has a module of another name. Data only."""

from __future__ import annotations

import re

NOT_FOR_TESTS = re.compile(
    r"sphinx.*|furo|shibuya|.*-sphinx-theme|sphinxcontrib-.*|recommonmark|myst-(?:parser|nb)|numpydoc|docutils-stubs|doc8|"
    r"mkdocs.*|mkdocstrings.*|pdoc3?|pydoctor|releases|reno|towncrier|"
    r"flake8.*|pep8|pep8-naming|pycodestyle|pydocstyle|pyflakes|pylint.*|ruff|black|isort|autopep8|yapf|bandit|mypy|"
    r"mypy-extensions|pyright|pyre-check|pytype|types-.*|.*-stubs|interrogate|vulture|radon|xenon|codespell|docformatter|"
    r"pre-commit.*|prek|pip-tools|pip|tox.*|nox|virtualenv|hatch|poetry|pdm|flit|twine|build|wheel|bump2?version|bumpversion|"
    r"bump-my-version|check-manifest|check-wheel-contents|readme-renderer|zest-releaser|commitizen|semantic-release|"
    r"python-semantic-release|cibuildwheel|auditwheel|setuptools-scm|setuptools-git-versioning|hatch-vcs|hatchling|"
    r"flit-core|poetry-core|coverage|codecov|coveralls|python-coveralls|coverage-.*|pytest-cov|pytest-xdist|pytest-sugar|"
    r"pytest-travis-fold|pytest-randomly|pytest-random-order|pytest-flake8|pytest-flakes|pytest-pep8|pytest-black.*|"
    r"pytest-mypy|pytest-mypy-plugins|pytest-pylint|pytest-isort|pytest-ruff|pytest-html|pytest-github-actions-annotate-failures|"
    r"pytest-instafail|pytest-clarity|pytest-pretty|pytest-codspeed|pytest-watch|pytest-testmon|pytest-rerunfailures|"
    r"pytest-checkdocs|pytest-enabler|pytest-perf|pytest-runner|"
    r"ipython|ipdb|pdbpp|jupyter.*|notebook|nbsphinx|ipykernel|asv|memory-profiler|line-profiler|snakeviz|safety|pip-audit|"
    r"invoke|fabric|paver|rope|jedi|gitpython|pygithub|dlint|ddtrace|nose2?|nose-.*|rednose|unittest2|rstcheck.*|restview|collective-checkdocs"
)
"""Documentation, linters, type checkers, packaging, coverage, and plugins of pytest that change no outcome. What a test
imports is kept all the same."""

QUIET_PLUGINS = frozenset(
    {
        "pytest_cov",
        "xdist",
        "pytest_sugar",
        "pytest_randomly",
        "random_order",
        "pytest_html",
        "pytest_travis_fold",
    }
)
"""Modules of plugins that no session needs, or that would change its order."""

NO_DISTRIBUTION = frozenset(
    "StringIO cStringIO urllib2 urlparse ConfigParser Queue cPickle __builtin__ httplib cookielib HTMLParser Cookie commands "
    "thread dummy_thread SocketServer BaseHTTPServer SimpleHTTPServer xmlrpclib htmlentitydefs anydbm copy_reg exceptions sets repr UserDict UserList UserString "
    "md5 sha new imp distutils asyncore asynchat smtpd lib2to3 test __main__ gi win32api win32con win32com pythoncom pywintypes "
    "java clr bpy maya hou nt msvcrt winreg _winreg org jarray js pyodide micropython".split()
)
"""Modules of Python 2, of the standard library of some version, or of something else that no index has."""

DISTRIBUTIONS: dict[str, str] = dict(
    pair.split("=")
    for pair in """
    yaml=PyYAML PIL=Pillow bs4=beautifulsoup4 dateutil=python-dateutil sklearn=scikit-learn skimage=scikit-image
    cv2=opencv-python-headless attr=attrs jwt=PyJWT serial=pyserial OpenSSL=pyOpenSSL Crypto=pycryptodome Cryptodome=pycryptodomex
    git=GitPython dotenv=python-dotenv docx=python-docx pptx=python-pptx magic=python-magic MySQLdb=mysqlclient
    psycopg2=psycopg2-binary nacl=PyNaCl pkg_resources=setuptools zmq=pyzmq jose=python-jose usb=pyusb ldap=python-ldap
    memcache=python-memcached slugify=python-slugify fitz=PyMuPDF _pytest=pytest tlz=toolz xdist=pytest-xdist faker=Faker
    socks=PySocks Xlib=python-xlib rest_framework=djangorestframework cairo=pycairo dns=dnspython kafka=kafka-python
    Cython=cython pyximport=cython ruamel=ruamel.yaml Levenshtein=Levenshtein multipart=python-multipart websocket=websocket-client
    osgeo=GDAL wx=wxPython google=protobuf markdown=Markdown markdown_it=markdown-it-py jinja2=Jinja2 flask=Flask werkzeug=Werkzeug pygments=Pygments
    webob=WebOb sqlalchemy=SQLAlchemy babel=Babel mako=Mako paste=Paste genshi=Genshi nose=nose enchant=pyenchant
    mpl_toolkits=matplotlib pylab=matplotlib ujson=ujson simplejson=simplejson lxml=lxml html5lib=html5lib
    pytest_asyncio=pytest-asyncio pytest_mock=pytest-mock iso8601=iso8601 pyasn1=pyasn1 ephem=ephem fontTools=fonttools
    stdnum=python-stdnum gnupg=python-gnupg pymysql=PyMySQL mysql=mysql-connector-python unidecode=Unidecode _cffi_backend=cffi
    """.split()
)
"""Modules whose distribution has another name."""

OF_FIXTURES = {
    "mocker": "pytest-mock",
    "benchmark": "pytest-benchmark",
    "requests_mock": "requests-mock",
    "httpx_mock": "pytest-httpx",
    "httpserver": "pytest-httpserver",
    "freezer": "pytest-freezer",
    "faker": "Faker",
    "datadir": "pytest-datadir",
    "snapshot": "syrupy",
}
"""Arguments of tests that come from a plugin which the test need not import."""

OF_MARKS = {
    "asyncio": "pytest-asyncio",
    "anyio": "anyio",
    "trio": "pytest-trio",
    "django_db": "pytest-django",
}


def distribution_of(module: str) -> str:
    """The distribution that has this top-level module; "" if no index has it."""
    if module in NO_DISTRIBUTION:
        return ""
    return DISTRIBUTIONS.get(module, module.replace("_", "-").strip("-"))
