"""`taskyard doctor`: what is wrong with a list, and its repair by name."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import answer, style
from taskyard.view.glyphs import painted
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.doctor import Finding, Repair
    from taskyard.view.glyphs import Style

#: People read a few of a kind and believe the rest; `--json` has them all.
MOST_OF_A_KIND = 5


def _arguments(parser: Parser) -> None:
    parser.add(
        "--fix",
        nargs="*",
        metavar="PROBLEM",
        help="Repair what can lose nothing; with names, those findings instead. Originals are kept.",
    )


def _run(args: Args) -> int:
    from taskyard.checkup import doctor

    with doctor(tasks_dir=args.tasks_dir, list=args.list, agent=args.by) as physician:
        repairs = physician.repair(args.fix) if args.fix is not None else ()
        refused = [(finding, str(error)) for finding, error in physician.refused]
        found = physician.examine()
        place = physician.folder
    answer(
        args,
        lambda: {
            "list": place,
            "healthy": not _problems(found),
            "findings": [_finding_json(finding) for finding in found],
            "repairs": [repair._asdict() for repair in repairs],
            "refused": [{**_finding_json(finding), "error": error} for finding, error in refused],
        },
        lambda: _lines(found, repairs, refused, place, style(args)),
        ids=(finding.name for finding in found),
    )
    return 1 if _problems(found) or refused else 0


def _problems(found: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in found if not finding.kind.is_note]


def _finding_json(finding: Finding) -> dict[str, object]:
    kind = finding.kind
    return {
        "name": finding.name,
        "severity": "note" if kind.is_note else "problem",
        "file": finding.file,
        "task_id": finding.task_id,
        "why": finding.why,
        "fix": finding.fix or None,
        "repair": "safe" if kind.is_safe else "named" if kind.can_fix else None,
    }


def _lines(
    found: Sequence[Finding],
    repairs: Sequence[Repair],
    refused: Sequence[tuple[Finding, str]],
    place: str,
    look: Style,
) -> Iterator[str]:
    for repair in repairs:
        kept = f"; the original is in {safe(repair.kept)}" if repair.kept else ""
        yield f"{painted('repaired', 'pass', look)} {repair.name}  {safe(repair.file)}: {safe(repair.done)}{kept}"
    for finding, error in refused:
        yield f"{painted('not repaired', 'fail', look)} {finding.name}  {safe(finding.file)}: {safe(error)}"
    yield from _finding_lines(found, look)
    problems = len(_problems(found))
    if not problems:
        yield f"Nothing is wrong with {safe(place)}."
        return
    easy = sum(finding.kind.is_safe for finding in found)
    yield f"{problems} {'problem' if problems == 1 else 'problems'} in {safe(place)} and around it."
    if easy:
        yield f"`taskyard doctor --fix` repairs {'it' if easy == problems == 1 else easy}; nothing can be lost by that."


def _finding_lines(found: Sequence[Finding], look: Style) -> Iterator[str]:
    names = list(dict.fromkeys(finding.name for finding in found))
    for name in names:
        same = [finding for finding in found if finding.name == name]
        for finding in same[:MOST_OF_A_KIND]:
            token = "muted" if finding.kind.is_note else "warn"
            yield f"{painted(name, token, look)}  {safe(finding.file)}"
            yield f"    {safe(finding.why)}"
            if finding.fix:
                kind = finding.kind
                how = "--fix" if kind.is_safe else f"--fix {name}" if kind.can_fix else "by hand"
                yield f"    {how}: {safe(finding.fix)}"
        if len(same) > MOST_OF_A_KIND:
            yield f"    … and {len(same) - MOST_OF_A_KIND} more of {name}"


DOCTOR = Command(
    _run,
    _arguments,
    "Look at a list's files, at what Taskyard keeps beside them, and at its own state, and name what is wrong.\n"
    "Looking changes nothing. --fix repairs what can lose nothing; a damaged file is rewritten only when\n"
    "asked by name, and a cycle is never broken by guess. Originals are kept in .taskyard/doctor.",
    examples=("taskyard doctor", "taskyard doctor --fix", "taskyard doctor --fix damaged-task held-task"),
    exits=("0  done: nothing is wrong (any more)", "1  something is wrong"),
)
