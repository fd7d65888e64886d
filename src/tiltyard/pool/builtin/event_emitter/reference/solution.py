class EventEmitter:
    """Callbacks for named events."""

    def __init__(self):
        """Make an emitter without callbacks."""
        self._registrations = {}  # event: list of _Registration, oldest first

    def on(self, event, callback):
        """Register a callback for an event."""
        self._registrations.setdefault(event, []).append(_Registration(callback, once=False))

    def once(self, event, callback):
        """Register a callback for the next time an event is emitted."""
        self._registrations.setdefault(event, []).append(_Registration(callback, once=True))

    def off(self, event, callback):
        """End the oldest registration of a callback; return whether there was one."""
        for registration in self._registrations.get(event, []):
            if registration.callback == callback:
                self._end(event, registration)
                return True
        return False

    def count(self, event):
        """Return the number of registrations for an event."""
        return len(self._registrations.get(event, []))

    def emit(self, event, *args, **kwargs):
        """Call the callbacks of an event in order; return how many were called."""
        called = 0
        first_error = None
        for registration in list(self._registrations.get(event, [])):
            if registration.ended:
                continue
            if registration.once:
                self._end(event, registration)
            called += 1
            try:
                registration.callback(*args, **kwargs)
            except Exception as error:
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        return called

    def _end(self, event, registration):
        registration.ended = True
        self._registrations[event].remove(registration)


class _Registration:
    def __init__(self, callback, once):
        self.callback = callback
        self.once = once
        self.ended = False
