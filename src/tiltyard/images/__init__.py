"""Images: trees of files under the digest of what they hold, kept once and shared by all who need them.

A store is a folder (the cache of this machine, or one beside the tasks of a pool) of blobs and manifests; every file
is kept once, however many images have it. :class:`ImageFiles` are a task's start files that lie in a store: nothing
is read before it is needed, and a pickle carries the digest and not the bytes. What is read is checked against its
digest. ``ImageFiles.tree`` is the image as a folder, made once on this machine, which cells lay their own files over.

Safe for many processes at once: everything is written aside and moved into its place, and what a living process uses
is not collected. Content is data here; nothing of it is ever executed.
"""

from tiltyard.images.files import ImageFiles
from tiltyard.images.store import Collected, Images, Kept
from tiltyard.images.tree import cache_folder

__all__ = ["Collected", "ImageFiles", "Images", "Kept", "cache_folder"]
