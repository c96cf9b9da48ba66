//! Studies: what a network with Rota does, and what it costs. The demo, the benchmarks, the figures of the
//! papers and the calibration, with the ends of the streams that they measure and the files that they read.
#![forbid(unsafe_code)]

pub mod bench;
pub mod calibrate;
pub mod came;
pub mod certificate;
pub mod clock;
pub mod demo;
pub mod figure;
pub mod interface;
pub mod load;
mod measure;
mod place;
pub mod plan;
mod plot;
pub mod quantity;
pub mod record;
pub mod scenario;
mod sequoia;
pub mod stall;
pub mod times;
pub mod topology;
pub mod transport;
pub mod trip;
pub mod video;
mod worker;
mod wrap;
