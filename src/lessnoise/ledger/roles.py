"""Who may do what with the ledgers of a server, as SQL for its administrator to read and run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

_GROUPS = """\
-- Once for each server: three groups. Members of lessnoise_create may create ledgers, which they then own.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['lessnoise_read', 'lessnoise_spend', 'lessnoise_create'] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = name) THEN
            EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', name);
        END IF;
    END LOOP;
END
$$;
GRANT USAGE ON SCHEMA lessnoise TO lessnoise_read, lessnoise_spend, lessnoise_create;
GRANT SELECT ON ALL TABLES IN SCHEMA lessnoise TO lessnoise_read, lessnoise_spend, lessnoise_create;
GRANT INSERT ON lessnoise.description, lessnoise.record TO lessnoise_spend, lessnoise_create;
GRANT INSERT (name, epsilon, delta, neighbours, created, lessnoise, adaptive) ON lessnoise.ledger TO lessnoise_create;
GRANT INSERT ON lessnoise.member TO lessnoise_create;
"""


def roles_script(
    ledger: str, *, read: Sequence[str] = (), spend: Sequence[str] = (), create: Sequence[str] = ()
) -> str:
    """SQL that lets roles of the server read a ledger, spend from it, or create ledgers; it may be run again.

    Nobody gets the right to change or remove a record. A role sees the rows of those ledgers alone that it may read.

    >>> for line in roles_script("city", spend=["ada"]).splitlines()[-4:]:
    ...     print(line)
    GRANT lessnoise_spend TO "ada";
    INSERT INTO lessnoise.member (ledger, role, may) SELECT id, 'ada', 'spend' FROM lessnoise.ledger WHERE name = 'city'
        ON CONFLICT (ledger, role) DO UPDATE SET may = excluded.may;
    COMMIT;
    """
    lines = ["BEGIN;", _GROUPS]
    for name in (*read, *spend, *create):
        _check(name)
    for role, may in (*((name, "read") for name in read), *((name, "spend") for name in spend)):
        member = f"SELECT id, {_literal(role)}, '{may}' FROM lessnoise.ledger WHERE name = {_literal(ledger)}"
        lines += [
            f"GRANT lessnoise_{may} TO {_name(role)};",
            f"INSERT INTO lessnoise.member (ledger, role, may) {member}",
            "    ON CONFLICT (ledger, role) DO UPDATE SET may = excluded.may;",
        ]
    lines += [f"GRANT lessnoise_create TO {_name(role)};" for role in create]
    return "\n".join([*lines, "COMMIT;", ""])


def _check(role: str) -> None:
    if not role or not role.isprintable() or len(role.encode()) > 63:
        raise InvalidInput(f"role={role!r} cannot be the name of a role: pass one of at most 63 bytes.")


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _literal(text: str) -> str:
    if "\\" in text:  # read the same whatever standard_conforming_strings is
        return " E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
    return "'" + text.replace("'", "''") + "'"
