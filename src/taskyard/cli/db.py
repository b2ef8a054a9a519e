"""`taskyard db`: the database that several machines share, made and brought up to date."""

from __future__ import annotations

from taskyard import config
from taskyard.cli.command import Command, Row
from taskyard.cli.output import answer, say
from taskyard.errors import StoreAway, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.database.connection import Link
    from taskyard.database.schema import Step

ROWS = {
    "status": Row("taskyard.cli.db:STATUS", "Whether the database is there, and of which version"),
    "upgrade": Row("taskyard.cli.db:UPGRADE", "Make its tables, or bring them to this version"),
}


def _arguments(parser: Parser) -> None:
    parser.add(
        "--store", metavar="ADDRESS", help="postgresql://…; $TASKYARD_STORE or the setting `store` if not given."
    )


def _address(args: Args) -> str:
    """The database that is meant.

    Raises:
        UsageError: none is set up.
    """
    from taskyard.database.address import is_address

    found = args.store if args.store is not None else config.load().store
    if not is_address(found):
        raise UsageError(
            "No database is set up.", "Set TASKYARD_STORE=postgresql://user@host/database, or `store` in config.toml."
        )
    return str(found)


def _status(args: Args) -> int:
    from taskyard.database import schema
    from taskyard.database.address import where_of
    from taskyard.database.connection import connect, spoken

    address, known = _address(args), schema.known()
    facts: dict[str, object] = {"where": where_of(address), "known": known}
    try:
        link = connect(address, check=False)
    except StoreAway as error:
        facts |= {"state": "disconnected", "why": error.why}
        return answer(args, lambda: facts, lambda: _lines(facts)) or error.exit_code
    try:
        with spoken(address):
            found = schema.version(link)
            facts |= {"state": _state(found, known), "schema": found, "server": link.info.server_version}
            facts |= _counts(link) if found == known else {}
    finally:
        link.close()
    return answer(args, lambda: facts, lambda: _lines(facts)) or (0 if facts["state"] == "ready" else 1)


def _state(found: int, known: int) -> str:
    return "ready" if found == known else "newer" if found > known else "older" if found else "empty"


def _counts(link: Link) -> dict[str, object]:
    """What is in it; and its state, if one may look and no more."""
    from taskyard.database import schema

    row = link.execute(
        "SELECT (SELECT count(*) FROM list), (SELECT count(*) FROM task WHERE NOT is_gone),"
        " (SELECT count(*) FROM instance WHERE until >= clock_timestamp()),"
        " (SELECT bool_and(has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'INSERT'))"
        "  FROM pg_tables WHERE schemaname = %s AND tablename <> 'migration')",
        [schema.NAME],
    ).fetchone()
    assert row is not None
    return {"lists": row[0], "tasks": row[1], "agents": row[2], **({} if row[3] else {"state": "read_only"})}


def _lines(facts: dict[str, object]) -> list[str]:
    advice = {
        "ready": ", ".join(
            _counted(facts.get(key), things)
            for key, things in (("lists", "lists"), ("tasks", "tasks"), ("agents", "living agents"))
        ),
        "read_only": "this role may look, and not write: its owner can GRANT that",
        "empty": "it has no tables of Taskyard yet: `taskyard db upgrade` makes them",
        "older": f"schema {facts.get('schema')}, this Taskyard needs {facts['known']}: `taskyard db upgrade`",
        "disconnected": facts.get("why"),
        "newer": f"schema {facts.get('schema')}, this Taskyard knows {facts['known']}: install a newer one",
    }
    state = str(facts["state"])
    return [f"{state:<12}  {facts['where']}: {advice[state]}"]


def _counted(count: object, things: str) -> str:
    return f"{count} {things[:-1] if count == 1 else things}"


def _upgrade(args: Args) -> int:
    from taskyard.database import schema
    from taskyard.database.address import where_of
    from taskyard.database.connection import connect, spoken

    address = _address(args)
    where = where_of(address)

    def tell(step: Step) -> None:
        say(args, f"{step.number:04d} {step.name.replace('_', ' ')} …")

    link = connect(address, check=False)
    try:
        with spoken(address):
            taken = schema.upgrade(link, where, tell)
    finally:
        link.close()
    done = [{"number": step.number, "name": step.name} for step in taken]
    text = f"{where} has schema {schema.known()}." if taken else f"{where} has schema {schema.known()} already."
    return answer(args, lambda: {"where": where, "schema": schema.known(), "taken": done}, lambda: [text])


STATUS = Command(
    _status,
    _arguments,
    "Say whether the database that the setting `store` names can be reached, and whether its tables are of this\n"
    "version.",
    examples=("taskyard db status", "taskyard db status --json"),
    exits=("1  its tables are of another version, or may not be written", "75  it cannot be reached now"),
)

UPGRADE = Command(
    _upgrade,
    _arguments,
    "Make Taskyard's tables in a database, or bring older ones to this version. Several may run it at once: one does\n"
    "the work. Whoever runs an older Taskyard is refused afterwards, in words.",
    examples=("TASKYARD_STORE=postgresql://ada@db.example/yard taskyard db upgrade",),
)
