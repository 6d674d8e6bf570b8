#!/usr/bin/env python3
"""Write a small export of Nsight Systems by its published schema, with SQLite itself.

internal/doctor/testdata/nsys.sqlite is made by this, so that the doctor's own reader of SQLite files is
held to a file that it did not write: comments in the schema, an index, an enumeration, long strings on
pages of their own, deleted rows. The rows are those of nsysTables in internal/doctor/forms_test.go.

    python3 scripts/nsys_fixture.py internal/doctor/testdata/nsys.sqlite
"""

import os
import sqlite3
import sys

SCHEMA = """
CREATE TABLE StringIds (
    -- Consolidation of repetitive string values.
    id                          INTEGER   NOT NULL   PRIMARY KEY,     -- ID reference value.
    value                       TEXT      NOT NULL                    -- String value.
);
CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
    start                       INTEGER   NOT NULL,                   -- Event start timestamp (ns).
    end                         INTEGER   NOT NULL,                   -- Event end timestamp (ns).
    eventClass                  INTEGER   NOT NULL,
    globalTid                   INTEGER,                              -- Serialized GlobalId.
    correlationId               INTEGER,                              -- REFERENCES CUPTI_ACTIVITY_KIND_KERNEL(correlationId)
    nameId                      INTEGER   NOT NULL,                   -- REFERENCES StringIds(id) -- Function name
    returnValue                 INTEGER   NOT NULL
);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
    streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
    shortName INTEGER NOT NULL, gridX INTEGER, gridY INTEGER, gridZ INTEGER
);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL,
    correlationId INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL REFERENCES ENUM_CUDA_MEMCPY_OPER(id),
    srcKind INTEGER, dstKind INTEGER
);
CREATE TABLE NVTX_EVENTS (
    start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER, textId INTEGER
);
CREATE INDEX kernel_start ON CUPTI_ACTIVITY_KIND_KERNEL (start);
"""

NAMES = ["cudaLaunchKernel_v7000", "void at::native::add<float>", "cudaMemcpyAsync_v3020", "aten::add, op_id = 7",
         "cudaStreamSynchronize_v3020"]


def main(path):
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA page_size = 1024")
    db.executescript(SCHEMA)
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", list(enumerate(NAMES, 1)))
    # Names of templates run to kilobytes; none of these is asked for.
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(100 + i, "void elementwise<%s>" % ("λ, " * (97 * i))) for i in range(12)])
    db.execute("INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (2, 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host')")
    db.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200', 132, 9, 0)")
    calls, kernels, ranges = [], [], []
    for i in range(50):
        at = 100_000 * i
        ranges.append((at, at + 60_000, 59, None, 77, 4))
        calls.append((at + 30_000, at + 36_000, 0, 77, 2 * i + 1, 1, 0))
        kernels.append((at + 40_000, at + 60_000, 0, 1, 7, 2 * i + 1, 0, 2, 2, 33, 1, 1))
    calls += [(5_000_000, 5_006_000, 0, 77, 900, 3, 0), (5_006_000, 5_021_000, 0, 77, 0, 5, 0)]
    extra = [(9_000_000 + i, 9_000_001 + i, 0, 78, 0, 5, 0) for i in range(60)]
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, ?, ?)", calls[::-1] + extra)
    db.execute("DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE globalTid = 78")
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", kernels)
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (5010000, 5020000, 0, 7, 900, 4096, 2, 2, 0)")
    db.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?)", ranges)
    db.commit()
    db.close()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: nsys_fixture.py FILE.sqlite")
    main(sys.argv[1])
