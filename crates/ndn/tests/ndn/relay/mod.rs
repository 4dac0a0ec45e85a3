//! The forwarder among programs and neighbours that others wrote.

mod ndnd;
mod support;
