//! Cloud volume: nested token buckets of the volume and of its instance in front of servers without
//! queue. Its capacity is limited by tokens and not by its hardware.
//!
//! Each request passes the limits of the volume and of the instance on requests per second and on
//! bytes per second. A limit has a base rate; one with credits also has a burst rate, which holds
//! until the credits end. [`fluid`] calculates the same phases without simulating requests.

pub mod bucket;
pub mod charge;
pub mod device;
pub mod fluid;
pub mod limit;
mod service;
pub mod specification;
mod touch;

pub use device::VolumeDevice;
pub use service::ServiceQuantiles;
pub use specification::VolumeSpecification;
pub use touch::FirstTouch;
