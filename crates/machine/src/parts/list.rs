//! The list of all parts: what is there of each kind is made of it.

// The kind in the catalogue, the controller, and the folder.
macro_rules! each_kind {
    ($with:ident) => {
        $with! {
            /// A MASSBUS adaptor, or what looks like one, with the hp driver.
            "massbus" is Massbus in massbus;
            /// DEC's UDA50, with the uda driver.
            "uda50" is Uda50 in uda50;
            /// An SMD controller on a UNIBUS, with the up driver.
            "up" is Up in up;
            /// A controller of the PC-AT's kind, with the hd driver.
            "wd1003" is Wd1003 in wd1003;
            /// A controller for the VMEbus, with a driver like Sun's.
            "vme" is Vme in vme;
            /// Nothing: a driver gives a device all that it takes.
            "direct" is Direct in direct;
            /// A disk on the DMA port of an Atari ST.
            "acsi" is Acsi in acsi;
        }
    };
}
pub(crate) use each_kind;
