#!/usr/bin/env python3
"""Rows of an SQLite database: a workload of `diskperf crash`, and its check.

usage: rows.py write JOURNAL_MODE SYNCHRONOUS
       rows.py check

JOURNAL_MODE is delete, truncate, persist or wal, and SYNCHRONOUS off, normal, full or extra.
A row is durable when its transaction is committed. The check finds the database sound, and
every row that was marked durable. With delete and full a commit may roll back, because
SQLite does not sync the directory after it removed the journal; extra does. With wal and
normal the last commits may be lost."""

import os
import sqlite3
import sys

ROWS = 5
ROW_BYTES = 3000


def connect():
    # Transactions begin and end where the program says so.
    return sqlite3.connect("rows.sqlite", isolation_level=None)


def row(number):
    return (f"{number}," * ROW_BYTES)[:ROW_BYTES]


def write(journal_mode, synchronous):
    database = connect()
    database.execute(f"pragma journal_mode={journal_mode}")
    database.execute(f"pragma synchronous={synchronous}")
    database.execute("create table rows (number integer primary key, text text)")
    with open(os.environ["DISKPERF_MARKS"], "a") as marks:
        for number in range(ROWS):
            database.execute("begin immediate")
            database.execute("insert into rows values (?, ?)", (number, row(number)))
            database.execute("commit")
            print("durable", number, file=marks, flush=True)
    # An end without a checkpoint, as of a process that is killed.
    os._exit(0)


def check():
    durable = [int(line) for line in open(os.environ["DISKPERF_DURABLE"])]
    database = connect()
    sound = database.execute("pragma integrity_check").fetchall()
    if sound != [("ok",)]:
        sys.exit(f"the database is damaged: {sound}")
    tables = database.execute("select name from sqlite_master").fetchall()
    rows = dict(database.execute("select number, text from rows")) if tables else {}
    for number in durable:
        if rows.get(number) != row(number):
            sys.exit(f"row {number} is lost")
    if any(text != row(number) for number, text in rows.items()):
        sys.exit("a row has other contents than were written")


if sys.argv[1:2] == ["write"] and len(sys.argv) == 4:
    write(*sys.argv[2:])
elif sys.argv[1:] == ["check"]:
    check()
else:
    sys.exit(__doc__)
