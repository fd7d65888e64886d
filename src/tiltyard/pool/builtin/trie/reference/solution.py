class Trie:
    """A set of words that can be searched by their beginnings."""

    def __init__(self, words=()):
        """Start with the given words."""
        self._root = _Node()
        self._size = 0
        for word in words:
            self.add(word)

    def add(self, word):
        """Add a word; return whether it is new."""
        node = self._root
        for letter in word:
            node = node.children.setdefault(letter, _Node())
        if node.is_word:
            return False
        node.is_word = True
        self._size += 1
        return True

    def remove(self, word):
        """Take a word out; return whether it was there."""
        if word not in self:
            return False
        path = [self._root]
        for letter in word:
            path.append(path[-1].children[letter])
        path[-1].is_word = False
        self._size -= 1
        for letter in reversed(word):
            node = path.pop()
            if node.is_word or node.children:
                break
            del path[-1].children[letter]
        return True

    def starting_with(self, prefix, limit=None):
        """Return the words that start with a prefix in alphabetical order, at most ``limit`` of them."""
        found = []
        start = self._find(prefix)
        stack = [(start, prefix)] if start else []
        while stack and len(found) != limit:
            node, word = stack.pop()
            if node.is_word:
                found.append(word)
            for letter in sorted(node.children, reverse=True):
                stack.append((node.children[letter], word + letter))
        return found

    def longest_prefix_of(self, text):
        """Return the longest word that ``text`` starts with, or None."""
        longest = None
        node = self._root
        for end in range(len(text) + 1):
            if node.is_word:
                longest = text[:end]
            if end == len(text) or text[end] not in node.children:
                return longest
            node = node.children[text[end]]

    def __contains__(self, word):
        node = self._find(word)
        return node is not None and node.is_word

    def __len__(self):
        return self._size

    def _find(self, prefix):
        node = self._root
        for letter in prefix:
            node = node.children.get(letter)
            if node is None:
                return None
        return node


class _Node:
    def __init__(self):
        self.children = {}
        self.is_word = False
