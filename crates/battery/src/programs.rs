//! I/O programs, one file each.

use crate::pattern::ProgramEntry;

/// Declares the program files as modules and lists their programs. rustfmt does not follow modules
/// that a macro declares, so that `make lint` names the files.
macro_rules! programs {
    ($($file:ident,)*) => {
        $(pub(crate) mod $file;)*

        /// Programs of each file, in the order of the list.
        pub(crate) const FILES: &[&[ProgramEntry]] = &[$($file::PROGRAMS,)*];
    };
}

programs! {
    read,
    write,
    rewrite,
    read_files,
    seqread,
    copy,
    scan,
    random_mix,
    random,
    sequential,
    cap_probe,
    log_append,
    database,
    metadata,
    track_read,
    populate,
    fsck,
    dump_restore,
}
