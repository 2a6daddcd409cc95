//! Offsets, counts and files, against what fio's null engine logs.
