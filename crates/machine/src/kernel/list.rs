//! The list of all kernels. The enums over them are made of it.

// The kernel as it runs, as the catalogue describes it, and a process with its calls.
macro_rules! each_kernel {
    ($with:ident! { $($arguments:tt)* }) => {
        $with! {
            { $($arguments)* }
            /// 4.2BSD, the seventh edition, and kernels like them.
            Unix(
                crate::kernel::Unix,
                crate::specification::UnixSpecification,
                crate::kernel::files::Session
            );
            /// Minix.
            Minix(
                crate::kernel::minix::Minix,
                crate::specification::MinixSpecification,
                crate::kernel::minix::session::MinixSession
            );
        }
    };
}
pub(crate) use each_kernel;
