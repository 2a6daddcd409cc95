//! Measured facts about single calls as tables: what the stack must make of them.

mod block;
mod ext4_calls;
mod ext4_tables;
mod ext4_timers;
mod notation;
mod reads;
mod xfs_calls;
