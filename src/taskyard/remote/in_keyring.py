"""A token that the system's keyring keeps."""

from __future__ import annotations

from taskyard.errors import MissingExtra, RemoteRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.remote.remotes import Remote


def token_in_keyring(remote: Remote) -> str:
    """The token for a place, by `service/user`.

    Raises:
        RemoteRefused: it is not there, or the keyring cannot be opened.
        MissingExtra: nothing here can open one.
    """
    try:
        import keyring
        import keyring.errors
    except ModuleNotFoundError as error:
        raise MissingExtra("A token in a keyring", "keyring", error.name or "") from error
    service, _, user = remote.token_keyring.partition("/")
    try:
        token = keyring.get_password(service, user)
    except keyring.errors.KeyringError as error:
        raise RemoteRefused(remote.name, f"the keyring cannot be opened ({type(error).__name__})") from error
    if not token:
        advice = f"`keyring set {service} {user}` puts it there."
        raise RemoteRefused(remote.name, f"the keyring has no token for {service} and {user}", advice)
    return token
