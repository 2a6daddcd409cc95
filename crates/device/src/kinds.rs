//! The list of all kinds of devices. The enums over them are made of it.

// The kind in the catalogue, the device, and its specification.
macro_rules! each_device {
    ($with:ident) => {
        $with! {
            /// Servers and a queue, without mechanics.
            "fixed" is Fixed(crate::fixed::Fixed, crate::fixed::FixedConfig);
            /// A disk with firmware, a buffer and a link.
            "drive" is Disk(crate::disk::device::Disk, crate::disk::device::DiskSpecification);
            /// A flash drive.
            "flash" is Flash(
                crate::flash::device::Flash,
                crate::flash::specification::FlashSpecification
            );
        }
    };
}
pub(crate) use each_device;
