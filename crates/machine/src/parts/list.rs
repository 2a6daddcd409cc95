//! List of all kinds of parts. Macros generate the code for each kind from this list.

// The kind in the catalogue, the controller, and the folder.
macro_rules! each_kind {
    ($with:ident) => {
        $with! {
            /// MASSBUS adaptor, or a controller compatible with one, with the hp driver.
            "massbus" is Massbus in massbus;
            /// UDA50 controller of DEC, with the uda driver.
            "uda50" is Uda50 in uda50;
            /// SMD controller on a UNIBUS, with the up driver.
            "up" is Up in up;
            /// Disk controller of a PC-AT, with the hd driver.
            "wd1003" is Wd1003 in wd1003;
            /// Controller for the VMEbus, with a driver like Sun's.
            "vme" is Vme in vme;
            /// Direct attachment without a controller. The driver submits as many requests as the
            /// device accepts.
            "direct" is Direct in direct;
            /// Disk on the DMA port of an Atari ST.
            "acsi" is Acsi in acsi;
        }
    };
}
pub(crate) use each_kind;
