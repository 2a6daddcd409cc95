//! List of all kinds of devices, from which the enums over devices and specifications are
//! generated.

// The kind in the catalogue, the device, and its specification.
macro_rules! each_device {
    ($with:ident) => {
        $with! {
            /// Device without mechanics: servers and a queue.
            "fixed" is Fixed(crate::fixed::FixedDevice, crate::fixed::FixedConfig);
            /// Hard disk with firmware, a buffer and a link.
            "drive" is Disk(crate::disk::device::Disk, crate::disk::device::DiskSpecification);
            /// Flash drive with a translation layer.
            "flash" is Flash(
                crate::flash::device::Flash,
                crate::flash::specification::FlashSpecification
            );
            /// Cloud volume: token buckets in front of servers.
            "volume" is Volume(
                crate::volume::VolumeDevice,
                crate::volume::VolumeSpecification
            );
        }
    };
}
pub(crate) use each_device;
