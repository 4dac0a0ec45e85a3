//! Which packets of a tunnel are looked at.

ringtap_base::choices! {
    /// Whether tunnels are opened, and whose packets count afterwards.
    #[derive(Default)]
    pub enum Tunnels: "choice of tunnels" {
        /// None is opened: a tunnel is traffic between its two ends.
        Outer = "outer",
        /// What a tunnel carries, instead of the tunnel.
        #[default]
        Inner = "inner",
        /// A tunnel and what it carries.
        Both = "both",
    }
}
