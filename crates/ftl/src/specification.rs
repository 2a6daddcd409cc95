//! What a translation layer is made for, and why it is refused.

use crate::features::Features;

/// How physical units lie in superblocks: one block of every plane of every die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Superblocks of the drive.
    pub superblocks: u32,
    /// Dies that a superblock crosses.
    pub dies: u32,
    /// Units that one die programs at once.
    pub program_units: u32,
    /// Program units of a superblock on each die.
    pub rows: u32,
}

impl Geometry {
    /// Units of a superblock.
    pub fn superblock_units(&self) -> u32 {
        self.dies * self.program_units * self.rows
    }
}

/// How a victim is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The superblock with the fewest valid units.
    Greedy,
    /// The best of this many superblocks drawn at random.
    Choices(u32),
    /// The superblock that was closed first.
    Fifo,
    /// The greatest (1 - u) age / 2u, where u is the valid share.
    CostBenefit,
}

/// Which frontier takes what garbage collection moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separation {
    /// The host's own, of the victim's stream.
    Mixed,
    /// One for all that is moved.
    Apart,
    /// One for each stream, apart from the host's.
    ByStream,
}

/// A translation layer's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Specification {
    /// Where physical units are.
    pub geometry: Geometry,
    /// Units that the host can map.
    pub logical_units: u32,
    /// How victims are chosen.
    pub policy: Policy,
    /// Where what is moved goes.
    pub separation: Separation,
    /// Host streams (placement identifiers), at least 1.
    pub streams: u32,
    /// Below this many free superblocks, collection begins.
    pub soft_free: u32,
    /// Below this many free superblocks, the host waits for collection.
    pub hard_free: u32,
    /// Static wear levelling begins when erase counts differ by this much.
    pub wear_threshold: Option<u32>,
    /// Seed of the choices that are drawn.
    pub seed: u64,
}

/// Why there can be no such translation layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Impossible {
    /// A count that must be at least 1 is 0.
    Zero(&'static str),
    /// Physical units do not fit the map's entries.
    TooLarge(u64),
    /// No physical unit is spare.
    NoSpare {
        /// Units that the host can map.
        logical: u64,
        /// Units that there are.
        physical: u64,
    },
    /// The reserve and the open superblocks use up the spare.
    Deadlock {
        /// The soft threshold.
        free: u32,
        /// Frontiers.
        open: u32,
        /// Units of all other superblocks.
        closed: u64,
        /// Units that the host can map.
        logical: u64,
    },
    /// The host could take the superblock that collection needs.
    HardTooLow {
        /// The hard threshold.
        hard: u32,
        /// The least that works.
        needed: u32,
    },
    /// A cache of as many bits a cell as all other superblocks.
    FewBits(u32),
    /// A program unit is not so many whole ones of one bit a cell.
    UnevenCache {
        /// Units of a program.
        program_units: u32,
        /// Bits of a cell.
        bits: u32,
    },
    /// Dies are not so many whole stripes, or a stripe has no data.
    UnevenParity {
        /// Program units of a stripe.
        stripe: u32,
        /// Dies.
        dies: u32,
    },
    /// The past covers more than there is.
    Overfilled {
        /// Units of the past.
        filled: u32,
        /// Units that the host can map.
        logical: u32,
    },
    /// A class of the past is not a share.
    NoShare,
    /// Collection in the background would begin after the host waits.
    SoftBelowHard {
        /// The soft threshold.
        soft: u32,
        /// The hard threshold.
        hard: u32,
    },
}

impl std::fmt::Display for Impossible {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Zero(value) => write!(formatter, "{value} is 0: give at least 1"),
            Self::TooLarge(value) => write!(
                formatter,
                "{value} physical units: a map of 4-byte entries holds {max}",
                max = u32::MAX - 1
            ),
            Self::NoSpare { logical, physical } => write!(
                formatter,
                "{logical} logical units of {physical} physical ones leave no spare: collection could never free a superblock"
            ),
            Self::Deadlock {
                free,
                open,
                closed,
                logical,
            } => write!(
                formatter,
                "{free} free and {open} open superblocks leave {closed} units for {logical} logical ones: \
         collection would deadlock"
            ),
            Self::HardTooLow { hard, needed } => write!(
                formatter,
                "a hard threshold of {hard} free superblocks: collection needs {needed} to move data to"
            ),
            Self::FewBits(value) => write!(
                formatter,
                "a cache in superblocks of {value} bits a cell: give 2, 3 (TLC) or 4 (QLC)"
            ),
            Self::UnevenCache {
                program_units,
                bits,
            } => write!(
                formatter,
                "a program unit of {program_units} units is not {bits} whole ones of one bit a cell"
            ),
            Self::UnevenParity { stripe, dies } => write!(
                formatter,
                "parity of {stripe} program units over {dies} dies: give 2 or more that divide the dies"
            ),
            Self::Overfilled { filled, logical } => write!(
                formatter,
                "a past of {filled} units on a drive of {logical}"
            ),
            Self::NoShare => formatter
                .write_str("a past whose share of writes or units is not within 0 to 100 %"),
            Self::SoftBelowHard { soft, hard } => write!(
                formatter,
                "the soft threshold ({soft}) is not above the hard one ({hard})"
            ),
        }
    }
}

impl std::error::Error for Impossible {}

impl Specification {
    /// Frontiers of collection and wear levelling.
    pub(crate) fn moving_frontiers(&self) -> u32 {
        let collection = match self.separation {
            Separation::Mixed => 0,
            Separation::Apart => 1,
            Separation::ByStream => self.streams,
        };
        collection + u32::from(self.wear_threshold.is_some())
    }

    /// Whether such a translation layer can work for ever.
    ///
    /// # Errors
    /// With the first parameter that makes it impossible.
    pub fn check(&self) -> Result<(), Impossible> {
        self.check_with(&Features::default())
    }

    /// Whether such a translation layer can work for ever with these features.
    ///
    /// # Errors
    /// With the first parameter that makes it impossible.
    pub fn check_with(&self, features: &Features) -> Result<(), Impossible> {
        self.check_counts()?;
        features.check(self)?;
        let (units, superblocks) = (
            u64::from(features.data_units(self.geometry.superblock_units())),
            self.geometry.superblocks,
        );
        let (physical, logical) = (
            units * u64::from(superblocks),
            u64::from(self.logical_units) + u64::from(features.system_units),
        );
        if logical >= physical {
            return Err(Impossible::NoSpare { logical, physical });
        }
        let (hard, soft) = (self.hard_free, self.soft_free);
        let needed = self.moving_frontiers().max(1) + 1;
        if hard < needed {
            return Err(Impossible::HardTooLow { hard, needed });
        }
        if soft <= hard {
            return Err(Impossible::SoftBelowHard { soft, hard });
        }
        let open = (self.streams)
            .saturating_add(self.moving_frontiers())
            .saturating_add(features.frontiers());
        let taken = soft
            .saturating_add(open)
            .saturating_add(features.fixed_superblocks());
        let closed = units * u64::from(superblocks.saturating_sub(taken));
        if closed <= logical {
            return Err(Impossible::Deadlock {
                free: soft,
                open,
                closed,
                logical,
            });
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), Impossible> {
        let Geometry {
            superblocks,
            dies,
            program_units,
            rows,
        } = self.geometry;
        let choices = if let Policy::Choices(d) = self.policy {
            d
        } else {
            1
        };
        for (name, count) in [
            ("superblocks", superblocks),
            ("dies", dies),
            ("units of a program", program_units),
            ("rows", rows),
            ("logical units (a spare of 1)", self.logical_units),
            ("streams", self.streams),
            ("choices", choices),
        ] {
            if count == 0 {
                return Err(Impossible::Zero(name));
            }
        }
        let physical = [dies, program_units, rows]
            .iter()
            .fold(u64::from(superblocks), |product, &count| {
                product.saturating_mul(u64::from(count))
            });
        if physical >= u64::from(u32::MAX) {
            return Err(Impossible::TooLarge(physical));
        }
        Ok(())
    }
}
