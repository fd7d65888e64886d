-- A store as version 1 of the schema wrote it: one episode of two steps.
BEGIN TRANSACTION;
CREATE TABLE episodes (
    id VARCHAR(32) NOT NULL, 
    run VARCHAR(32), 
    number INTEGER NOT NULL, 
    attempt INTEGER NOT NULL, 
    task TEXT NOT NULL, 
    task_digest VARCHAR(64) NOT NULL, 
    pool TEXT NOT NULL, 
    pool_version TEXT NOT NULL, 
    pool_digest VARCHAR(64) NOT NULL, 
    pool_spec TEXT NOT NULL, 
    player TEXT NOT NULL, 
    wall VARCHAR(64) NOT NULL, 
    run_seed BIGINT, 
    seed BIGINT NOT NULL, 
    observation TEXT NOT NULL, 
    reward FLOAT, 
    void TEXT, 
    verdict TEXT, 
    flags TEXT NOT NULL, 
    settings TEXT NOT NULL, 
    versions TEXT NOT NULL, 
    started VARCHAR(40) NOT NULL, 
    seconds FLOAT NOT NULL, 
    digest VARCHAR(64) NOT NULL, 
    PRIMARY KEY (id), 
    FOREIGN KEY(run) REFERENCES runs (id)
);
INSERT INTO "episodes" VALUES('e-0000000001',NULL,0,0,'median','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','builtin','','','','reference','namespace',1,7,'Implement median',0.5,NULL,'{"outcomes": [{"id": "hidden/0", "passed": true, "reason": ""}], "reward": 0.5}','["delegated_equality"]','{"reward": "all"}','{"tiltyard": "0.1.0"}','2026-11-01T00:00:00+00:00',0.25,'cc84c317ae4314ef44c020ee5d1496ee2d4ae7cf73d6ac70e68c10d9a39b4d8f');
CREATE TABLE runs (
    id VARCHAR(32) NOT NULL, 
    pool TEXT NOT NULL, 
    pool_version TEXT NOT NULL, 
    pool_digest VARCHAR(64) NOT NULL, 
    pool_spec TEXT NOT NULL, 
    player TEXT NOT NULL, 
    wall VARCHAR(64) NOT NULL, 
    seed BIGINT NOT NULL, 
    settings TEXT NOT NULL, 
    versions TEXT NOT NULL, 
    started VARCHAR(40) NOT NULL, 
    finished VARCHAR(40) NOT NULL, 
    PRIMARY KEY (id)
);
CREATE TABLE steps (
    episode VARCHAR(32) NOT NULL, 
    n INTEGER NOT NULL, 
    action TEXT NOT NULL, 
    observation TEXT NOT NULL, 
    reward FLOAT, 
    terminated BOOLEAN NOT NULL, 
    truncated BOOLEAN NOT NULL, 
    truncated_by TEXT NOT NULL, 
    invalid BOOLEAN NOT NULL, 
    PRIMARY KEY (episode, n), 
    FOREIGN KEY(episode) REFERENCES episodes (id) ON DELETE CASCADE
);
INSERT INTO "steps" VALUES('e-0000000001',0,'{"tool":"view_file"}','1: def median',0.0,0,0,'',1);
INSERT INTO "steps" VALUES('e-0000000001',1,'{"tool":"submit"}','submitted',0.5,1,0,'',0);
CREATE TABLE tiltyard_schema (
    version INTEGER NOT NULL, 
    applied VARCHAR(40) NOT NULL, 
    "by" VARCHAR(40) NOT NULL, 
    PRIMARY KEY (version)
);
INSERT INTO "tiltyard_schema" VALUES(1,'2026-11-30T10:23:57.796665+00:00','0.1.0');
CREATE INDEX episodes_by_task ON episodes (task);
CREATE INDEX episodes_by_run ON episodes (run, number);
COMMIT;
