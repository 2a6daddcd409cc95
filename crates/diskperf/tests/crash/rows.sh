#!/bin/sh
# Rows by the shell of SQLite, each of its own process. usage: rows.sh write|check

set -e
case $1 in
write)
    sqlite3 rows 'pragma synchronous=extra; create table rows (number integer primary key)'
    for number in 1 2 3 4 5; do
        sqlite3 rows "pragma synchronous=extra; insert into rows values ($number)"
        echo "durable $number" >> "$DISKPERF_MARKS"
    done
    ;;
check)
    [ -s "$DISKPERF_DURABLE" ] || exit 0
    [ "$(sqlite3 rows 'pragma integrity_check')" = ok ] || { echo "the database is damaged"; exit 1; }
    sqlite3 rows 'select number from rows order by number' > "$DISKPERF_DURABLE.found"
    lost=$(sort "$DISKPERF_DURABLE" | comm -23 - "$DISKPERF_DURABLE.found")
    [ -z "$lost" ] || { echo "rows are lost:" $lost; exit 1; }
    ;;
esac
