-- What the machines of a team see of each other's background jobs: records, events, notices, and requests to steer them.
--
-- The files on a job's own machine are the truth about it. Its relay brings them here (`push_jobs`, `put_notices`) and
-- takes requests from here.

-- Counts whose rows stay locked until whoever raised one has committed: what they number becomes visible in that order.
CREATE TABLE tally (
    name        text PRIMARY KEY,
    value       bigint NOT NULL
) WITH (fillfactor = 50);

INSERT INTO tally VALUES ('job', 0), ('event', 0), ('event_floor', 0);

-- Where jobs run: one home on one machine.
CREATE TABLE host (
    id          text PRIMARY KEY,           -- made once, kept in that home
    name        text NOT NULL,              -- for people
    machine     text NOT NULL,              -- and its boot
    heard       timestamptz NOT NULL,       -- when its relay last said something
    until       timestamptz NOT NULL,       -- and until when that is believed to live
    stream      bigint NOT NULL,            -- how often its stream of events was begun anew
    position    bigint NOT NULL             -- the last event in it that is here
) WITH (fillfactor = 50);

CREATE TABLE job (
    id          text NOT NULL,
    host        text NOT NULL REFERENCES host,
    version     bigint NOT NULL,            -- of the last write to it
    is_final    boolean NOT NULL,           -- and that is the last
    started     bigint NOT NULL,            -- epoch ms, by its own machine's clock
    body        text NOT NULL,              -- the job as JSON
    PRIMARY KEY (id, host)
) WITH (fillfactor = 70);

CREATE INDEX job_living ON job (host) WHERE NOT is_final;
CREATE INDEX job_by_version ON job (version);

CREATE TABLE event (
    id          bigint PRIMARY KEY,
    host        text NOT NULL REFERENCES host,
    stream      bigint NOT NULL,
    local       bigint NOT NULL,            -- its id on its own machine
    at          bigint NOT NULL,
    subtype     text NOT NULL,
    job         text NOT NULL,
    body        text NOT NULL,
    UNIQUE (host, stream, local)
);

CREATE INDEX event_by_job ON event (job, id);

CREATE TABLE notice (
    id          text PRIMARY KEY,
    host        text NOT NULL REFERENCES host,
    job         text NOT NULL,
    recipient   text NOT NULL,              -- the name of a box
    is_urgent   boolean NOT NULL,
    at          bigint NOT NULL,
    body        text NOT NULL,              -- as it stood in the file
    line        jsonb NOT NULL,             -- who is next, from the inside out: [{"box", "parent", "instance"}, ...]
    state       text NOT NULL,              -- stored, delivered, read
    is_again    boolean NOT NULL,           -- somebody had it before, and died
    holder      text,                       -- in whose hands it is: an instance, or
    until       timestamptz,                -- somebody's for so long
    op          text,                       -- of the request that changed it last: one that is sent twice counts once
    changed     timestamptz NOT NULL
) WITH (fillfactor = 70);

CREATE INDEX notice_open ON notice (recipient) WHERE state <> 'read';
CREATE INDEX notice_by_job ON notice (job);
CREATE INDEX notice_read ON notice (changed) WHERE state = 'read';

-- Which living instance has which name, as the name of a box.
CREATE TABLE receiver (
    instance    text PRIMARY KEY,
    box         text NOT NULL
);

CREATE INDEX receiver_by_box ON receiver (box);

-- What is asked of another machine's jobs.
CREATE TABLE request (
    id          uuid PRIMARY KEY,           -- made by whoever asks: one that is sent twice is one
    host        text NOT NULL,
    job         text NOT NULL,
    verb        text NOT NULL,
    arguments   text NOT NULL,
    asked_by    text NOT NULL,
    reply_to    text NOT NULL,              -- the channel on which the answer is told
    state       text NOT NULL,              -- asked, begun, done, withdrawn
    begun_by    text,                       -- the relay that took it up
    answer      text,
    changed     timestamptz NOT NULL
);

CREATE INDEX request_open ON request (host) WHERE state IN ('asked', 'begun');

-- All notices wait while this has a row.
CREATE TABLE hold (
    is_on       boolean PRIMARY KEY CHECK (is_on),
    since       timestamptz NOT NULL
);

CREATE FUNCTION lives(p_instance text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM instance i WHERE i.id = p_instance AND i.until >= clock_timestamp())
$$;

-- A host as its relay says it is. `p_position`: where its events begin to be of interest here, if it is new.
CREATE FUNCTION greet(
    p_host text, p_name text, p_machine text, p_silence bigint, p_position bigint,
    OUT stream bigint, OUT "position" bigint
)
LANGUAGE sql AS $$
    INSERT INTO host AS h (id, name, machine, heard, until, stream, position)
    VALUES (p_host, p_name, p_machine, clock_timestamp(), clock_timestamp() + p_silence * interval '1 ms', 0, p_position)
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, machine = excluded.machine, heard = excluded.heard, until = greatest(h.until, excluded.until)
    RETURNING h.stream, h.position
$$;

-- Events of a host from its `p_since` on, and records of its jobs, together: whoever reads of an end in the stream finds
-- it in the record, and whoever finds it in the record finds it in the stream. Nothing of it, if those events are not the
-- next ones: somebody else was quicker, and whoever sends looks again.
CREATE FUNCTION push_jobs(
    p_host      text,
    p_stream    bigint,
    p_since     bigint,
    p_locals    bigint[],
    p_ats       bigint[],
    p_subtypes  text[],
    p_about     text[],
    p_events    text[],
    p_ids       text[],
    p_finals    boolean[],
    p_starts    bigint[],
    p_bodies    text[],
    p_keep      bigint          -- events that stay, of all hosts
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_host   host%ROWTYPE;
    v_last   bigint;
    v_count  bigint := cardinality(p_locals);
BEGIN
    SELECT * INTO v_host FROM host h WHERE h.id = p_host FOR UPDATE;
    IF v_host.stream <> p_stream OR v_host.position <> p_since THEN
        RETURN false;
    END IF;
    IF v_count > 0 THEN
        UPDATE tally t SET value = t.value + v_count WHERE t.name = 'event' RETURNING t.value INTO v_last;
        INSERT INTO event (id, host, stream, local, at, subtype, job, body)
        SELECT v_last - v_count + e.n, p_host, p_stream, e.local, e.at, e.subtype, e.job, e.body
        FROM unnest(p_locals, p_ats, p_subtypes, p_about, p_events)
            WITH ORDINALITY AS e(local, at, subtype, job, body, n);
        UPDATE host h SET position = p_locals[v_count] WHERE h.id = p_host;
        IF v_last / 1000 > (v_last - v_count) / 1000 AND v_last > p_keep THEN
            UPDATE tally t SET value = v_last - p_keep WHERE t.name = 'event_floor' AND t.value < v_last - p_keep;
            DELETE FROM event e WHERE e.id <= v_last - p_keep;
        END IF;
        PERFORM pg_notify('events', '');
    END IF;

    IF cardinality(p_ids) > 0 THEN
        UPDATE tally t SET value = t.value + 1 WHERE t.name = 'job' RETURNING t.value INTO v_last;
        INSERT INTO job AS j (id, host, version, is_final, started, body)
        SELECT r.id, p_host, v_last, r.is_final, r.started, r.body
        FROM unnest(p_ids, p_finals, p_starts, p_bodies) AS r(id, is_final, started, body)
        ON CONFLICT (id, host) DO UPDATE SET version = excluded.version, is_final = excluded.is_final, body = excluded.body
        WHERE NOT j.is_final AND (j.body <> excluded.body OR excluded.is_final);
        PERFORM pg_notify('jobs', '');
    END IF;
    RETURN true;
END $$;

-- Notices as they come from the outbox of a host, each once; `p_state` read: they need no delivery any more.
CREATE FUNCTION put_notices(
    p_host text, p_state text, p_ids text[], p_jobs text[], p_recipients text[], p_urgent boolean[], p_ats bigint[],
    p_again boolean[], p_bodies text[], p_lines text[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO notice AS n (id, host, job, recipient, is_urgent, at, body, line, state, is_again, changed)
    SELECT r.id, p_host, r.job, r.recipient, r.urgent, r.at, r.body, r.line::jsonb, p_state, r.again, clock_timestamp()
    FROM unnest(p_ids, p_jobs, p_recipients, p_urgent, p_ats, p_again, p_bodies, p_lines)
        AS r(id, job, recipient, urgent, at, again, body, line)
    ON CONFLICT (id) DO UPDATE SET state = 'read', changed = excluded.changed
        WHERE excluded.state = 'read' AND n.state <> 'read';
    PERFORM pg_notify('notices', '');
END $$;

-- Who is to hear of a job now, by who started it and the jobs around it.
CREATE FUNCTION heir(p_host text, p_meant_for text, p_line jsonb) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_each jsonb;
    v_box  text;
BEGIN
    IF jsonb_array_length(p_line) = 0 THEN
        RETURN p_meant_for;
    END IF;
    FOR v_each IN SELECT jsonb_array_elements(p_line) LOOP
        v_box := v_each->>'box';
        IF v_box = 'me' OR EXISTS (SELECT FROM receiver r WHERE r.box = v_box AND lives(r.instance)) THEN
            RETURN v_box;
        END IF;
        IF v_each->>'parent' IS NULL THEN
            RETURN CASE WHEN v_each->>'instance' IS NOT NULL AND NOT lives(v_each->>'instance') THEN 'me' ELSE v_box END;
        END IF;
        IF EXISTS (SELECT FROM job j WHERE j.id = v_each->>'parent' AND j.host = p_host AND NOT j.is_final) THEN
            RETURN v_box;
        END IF;
    END LOOP;
    RETURN 'me';
END $$;

-- What waits for a recipient (NULL: for anybody), the urgent first; what dead receivers had in hand is back by then.
CREATE FUNCTION waiting_notices(p_box text, p_most integer)
RETURNS TABLE (id text, host text, body text, recipient text, is_again boolean, rest bigint)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE notice n SET state = 'stored', is_again = true, holder = NULL, until = NULL, changed = clock_timestamp()
    WHERE n.id IN (
        SELECT d.id FROM notice d WHERE d.state = 'delivered'
            AND CASE WHEN d.until IS NULL THEN NOT lives(d.holder) ELSE d.until < clock_timestamp() END
        FOR UPDATE SKIP LOCKED
    );
    RETURN QUERY
    SELECT n.id, n.host, n.body, n.recipient, n.is_again, count(*) OVER ()
    FROM notice n
    WHERE n.state = 'stored'
        AND (p_box IS NULL OR n.recipient = p_box
            OR (n.recipient <> 'me' AND heir(n.host, n.recipient, n.line) = p_box))
    ORDER BY NOT n.is_urgent, n.at, n.id
    LIMIT p_most;
END $$;
