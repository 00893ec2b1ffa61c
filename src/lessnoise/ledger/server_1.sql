-- Version 1 of the tables that keep ledgers on a PostgreSQL server. Run once, in one transaction, by whoever is to own
-- them. Every function names its schemas, so that nobody can put another table or operator in the way.

CREATE SCHEMA IF NOT EXISTS lessnoise;
REVOKE ALL ON SCHEMA lessnoise FROM PUBLIC;

CREATE TABLE lessnoise.version (
    version integer PRIMARY KEY,
    applied timestamptz NOT NULL DEFAULT clock_timestamp(),
    lessnoise text NOT NULL
);
-- One row a ledger. Whoever creates it owns it. "last" and "moment" are those of its newest record.
CREATE TABLE lessnoise.ledger (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    epsilon float8 NOT NULL,
    delta float8 NOT NULL,
    neighbours text NOT NULL,
    created float8 NOT NULL,
    lessnoise text NOT NULL,
    adaptive boolean NOT NULL,
    owner text NOT NULL DEFAULT session_user,
    last bigint NOT NULL DEFAULT 0,
    moment float8 NOT NULL DEFAULT 0
);
CREATE TABLE lessnoise.description (
    ledger bigint NOT NULL REFERENCES lessnoise.ledger (id),
    id bigint NOT NULL,
    digest bytea NOT NULL,
    json text NOT NULL,
    PRIMARY KEY (ledger, id),
    UNIQUE (ledger, digest)
);
CREATE TABLE lessnoise.record (
    ledger bigint NOT NULL REFERENCES lessnoise.ledger (id),
    id bigint NOT NULL,
    kind text NOT NULL,
    time float8 NOT NULL,
    who text NOT NULL,
    partition text NOT NULL,
    description bigint,
    note text NOT NULL,
    key text NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (ledger, id),
    FOREIGN KEY (ledger, description) REFERENCES lessnoise.description (ledger, id)
);
CREATE UNIQUE INDEX record_of_key ON lessnoise.record (ledger, key) WHERE key <> '';
CREATE INDEX other_record ON lessnoise.record (ledger, id) WHERE kind <> 'spend';
CREATE TABLE lessnoise.total (
    ledger bigint NOT NULL,
    partition text NOT NULL,
    description bigint NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (ledger, partition, description),
    FOREIGN KEY (ledger, description) REFERENCES lessnoise.description (ledger, id)
);
-- Who but its owner may use a ledger: a role, and all that are members of it.
CREATE TABLE lessnoise.member (
    ledger bigint NOT NULL REFERENCES lessnoise.ledger (id),
    role text NOT NULL,
    may text NOT NULL CHECK (may IN ('read', 'spend')),
    PRIMARY KEY (ledger, role)
);

-- Rights. session_user is who has logged in, also within functions that run with the rights of their owner.

CREATE FUNCTION lessnoise.is_keeper() RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_has_role(session_user, nspowner, 'member') FROM pg_namespace WHERE nspname = 'lessnoise'
$$;

CREATE FUNCTION lessnoise.allowed(what text) RETURNS SETOF bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT id FROM lessnoise.ledger WHERE owner = session_user OR lessnoise.is_keeper()
    UNION
    SELECT ledger FROM lessnoise.member JOIN pg_roles ON rolname = role
    WHERE (what = 'read' OR may = 'spend') AND pg_has_role(session_user, pg_roles.oid, 'member')
$$;

ALTER TABLE lessnoise.ledger ENABLE ROW LEVEL SECURITY;
ALTER TABLE lessnoise.description ENABLE ROW LEVEL SECURITY;
ALTER TABLE lessnoise.record ENABLE ROW LEVEL SECURITY;
ALTER TABLE lessnoise.total ENABLE ROW LEVEL SECURITY;
ALTER TABLE lessnoise.member ENABLE ROW LEVEL SECURITY;
CREATE POLICY reading ON lessnoise.ledger FOR SELECT
    USING (owner = session_user OR id = ANY (ARRAY(SELECT lessnoise.allowed('read'))));
CREATE POLICY reading ON lessnoise.description FOR SELECT USING (ledger = ANY (ARRAY(SELECT lessnoise.allowed('read'))));
CREATE POLICY reading ON lessnoise.record FOR SELECT USING (ledger = ANY (ARRAY(SELECT lessnoise.allowed('read'))));
CREATE POLICY reading ON lessnoise.total FOR SELECT USING (ledger = ANY (ARRAY(SELECT lessnoise.allowed('read'))));
CREATE POLICY reading ON lessnoise.member FOR SELECT USING (ledger = ANY (ARRAY(SELECT lessnoise.allowed('read'))));
CREATE POLICY creating ON lessnoise.ledger FOR INSERT
    WITH CHECK (owner = session_user AND last = 0 AND moment = 0);
CREATE POLICY spending ON lessnoise.description FOR INSERT
    WITH CHECK (ledger = ANY (ARRAY(SELECT lessnoise.allowed('spend'))));
CREATE POLICY spending ON lessnoise.record FOR INSERT
    WITH CHECK (ledger = ANY (ARRAY(SELECT lessnoise.allowed('spend'))));
CREATE POLICY sharing ON lessnoise.member FOR INSERT
    WITH CHECK (ledger IN (SELECT id FROM lessnoise.ledger WHERE owner = session_user));

-- One writer at a time: the row of the ledger is locked until the transaction ends.
CREATE FUNCTION lessnoise.lock(asked text) RETURNS lessnoise.ledger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found lessnoise.ledger;
BEGIN
    SELECT * INTO found FROM lessnoise.ledger WHERE name = asked AND id IN (SELECT lessnoise.allowed('read')) FOR UPDATE;
    IF found.id IS NOT NULL AND found.id NOT IN (SELECT lessnoise.allowed('spend')) THEN
        RAISE insufficient_privilege USING MESSAGE = 'no right to spend';
    END IF;
    RETURN found;
END
$$;

-- New records follow the last one without a gap, say truly who writes them and when, and are counted. Owners may import
-- older ones. Once for each statement, so that an import of many is as quick.
CREATE FUNCTION lessnoise.append() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    l lessnoise.ledger;
    first bigint;
    newest bigint;
    many bigint;
BEGIN
    SELECT min(id), max(id), count(*) INTO first, newest, many FROM added;
    IF many = 0 THEN
        RETURN NULL;
    END IF;
    SELECT * INTO l FROM lessnoise.ledger WHERE id = (SELECT min(ledger) FROM added) FOR UPDATE;
    IF first <> l.last + 1 OR newest - first + 1 <> many OR l.id <> (SELECT max(ledger) FROM added) THEN
        RAISE serialization_failure USING MESSAGE = 'the record does not follow the last one';
    END IF;
    IF l.owner <> session_user AND NOT lessnoise.is_keeper() AND EXISTS (
        SELECT 1 FROM added WHERE kind IN ('close', 'open') OR who <> session_user OR time < l.moment
            OR time > greatest(l.moment, extract(epoch FROM clock_timestamp())::float8)
    ) THEN
        RAISE insufficient_privilege USING MESSAGE = 'no right to write this record';
    END IF;
    UPDATE lessnoise.ledger SET last = newest, moment = greatest(moment, (SELECT max(time) FROM added)) WHERE id = l.id;
    INSERT INTO lessnoise.total AS t
    SELECT ledger, partition, description, count(*) FROM added WHERE kind = 'spend' GROUP BY 1, 2, 3
    ON CONFLICT (ledger, partition, description) DO UPDATE SET count = t.count + excluded.count;
    RETURN NULL;
END
$$;
CREATE TRIGGER append AFTER INSERT ON lessnoise.record REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION lessnoise.append();

CREATE FUNCTION lessnoise.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE insufficient_privilege USING MESSAGE = 'the history of a ledger is only ever added to';
END
$$;
CREATE TRIGGER refuse BEFORE UPDATE OR DELETE OR TRUNCATE ON lessnoise.record
    FOR EACH STATEMENT EXECUTE FUNCTION lessnoise.refuse();
CREATE TRIGGER refuse BEFORE UPDATE OR DELETE OR TRUNCATE ON lessnoise.description
    FOR EACH STATEMENT EXECUTE FUNCTION lessnoise.refuse();
