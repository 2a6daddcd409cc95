//! List of all modelled kernels, from which macros build the enums over kernels.

// The kernel as it runs, as the catalogue describes it, and a process with its calls.
macro_rules! each_kernel {
    ($with:ident! { $($arguments:tt)* }) => {
        $with! {
            { $($arguments)* }
            /// 4.2BSD, the seventh edition of UNIX, and kernels like them.
            Unix(
                crate::kernel::UnixKernel,
                crate::specification::UnixSpecification,
                crate::kernel::files::UnixSession
            );
            /// Minix, with a file server and disk tasks that exchange messages.
            Minix(
                crate::kernel::minix::MinixKernel,
                crate::specification::MinixSpecification,
                crate::kernel::minix::session::MinixSession
            );
        }
    };
}
pub(crate) use each_kernel;
