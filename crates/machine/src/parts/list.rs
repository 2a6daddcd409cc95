//! List of all kinds of parts. Macros generate the code for each kind from this list.

// The kind in the catalogue, the controller, the folder, and the specification.
macro_rules! each_kind {
    ($with:ident) => {
        $with! {
            /// MASSBUS adaptor, or a controller compatible with one, with the hp driver.
            "massbus" is Massbus in massbus as MassbusSpecification;
            /// UDA50 controller of DEC, with the uda driver.
            "uda50" is Uda50 in uda50 as Uda50Specification;
            /// SMD controller on a UNIBUS, with the up driver.
            "up" is Up in up as UpSpecification;
            /// Disk controller of a PC-AT, with the hd driver.
            "wd1003" is Wd1003 in wd1003 as Wd1003Specification;
            /// Controller for the VMEbus, with a driver like Sun's.
            "vme" is Vme in vme as VmeSpecification;
            /// Direct attachment without a controller. The driver submits as many requests as the
            /// device accepts.
            "direct" is Direct in direct as DirectSpecification;
            /// Disk on the DMA port of an Atari ST.
            "acsi" is Acsi in acsi as AcsiSpecification;
        }
    };
}
pub(crate) use each_kind;
