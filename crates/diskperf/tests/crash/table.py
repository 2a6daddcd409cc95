#!/usr/bin/env python3
"""Records that are appended and synced, in turns with commits of SQLite, and their check.

usage: table.py write JOURNAL_MODE SYNCHRONOUS COUNT
       table.py check

The check prints a line for each kind of loss: records, commits, and damage of the database."""

import os
import sqlite3
import sys


def record(number):
    return f"{number}".rjust(511, ".").encode() + b"\n"


def text(number):
    return (f"{number}," * 3000)[:3000]


def connect():
    return sqlite3.connect("rows.sqlite", isolation_level=None)


def write(journal_mode, synchronous, count):
    log = os.open("records", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    directory = os.open(".", os.O_RDONLY)
    os.fsync(directory)
    database = connect()
    database.execute(f"pragma journal_mode={journal_mode}")
    database.execute(f"pragma synchronous={synchronous}")
    database.execute("create table rows (number integer primary key, text text)")
    with open(os.environ["DISKPERF_MARKS"], "a") as marks:
        for number in range(count):
            os.write(log, record(number))
            os.fsync(log)
            print("durable record", number, file=marks, flush=True)
            database.execute("insert into rows values (?, ?)", (number, text(number)))
            print("durable commit", number, file=marks, flush=True)
    # An end without a checkpoint, as of a process that is killed.
    os._exit(0)


def lost_commits(durable):
    database = connect()
    sound = database.execute("pragma integrity_check").fetchall()
    if sound != [("ok",)]:
        raise sqlite3.DatabaseError(sound)
    tables = database.execute("select name from sqlite_master").fetchall()
    rows = dict(database.execute("select number, text from rows")) if tables else {}
    return [number for number in durable if rows.get(number) != text(number)]


def check():
    durable = [line.split() for line in open(os.environ["DISKPERF_DURABLE"])]
    numbers = {kind: [int(number) for one, number in durable if one == kind] for kind in ("record", "commit")}
    data = open("records", "rb").read() if os.path.exists("records") else b""
    records = [number for number in numbers["record"] if data[512 * number : 512 * (number + 1)] != record(number)]
    found = [f"lost records: {records}"] if records else []
    try:
        commits = lost_commits(numbers["commit"])
        found += [f"lost commits: {commits}"] if commits else []
    except sqlite3.Error as error:
        found.append(f"damaged database: {error}")
    sys.exit("\n".join(found) or 0)


if sys.argv[1] == "write":
    write(*sys.argv[2:4], int(sys.argv[4]))
else:
    check()
