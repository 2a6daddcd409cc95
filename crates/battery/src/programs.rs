//! The programs, one file each.

pub(crate) mod copy;
pub(crate) mod dump_restore;
pub(crate) mod fsck;
pub(crate) mod random_mix;
pub(crate) mod read;
pub(crate) mod read_files;
pub(crate) mod rewrite;
pub(crate) mod scan;
pub(crate) mod seqread;
pub(crate) mod track_read;
pub(crate) mod write;
