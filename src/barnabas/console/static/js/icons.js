// Small pictures for the menu, drawn with one path each on a grid of 16.
import { html } from "/static/vendor/ui.js";

const PATHS = {
  logo: "M2 3h5a3 3 0 0 1 2 5 3 3 0 0 1-2 5H2zM12 3v10M14.5 5.5v5",
  Overview: "M2 9h4V2H2zM10 7h4V2h-4zM10 14h4V10h-4zM2 14h4v-2H2z",
  Topics: "M2 4h12M2 8h12M2 12h8",
  Groups: "M5.5 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM2 13c0-2.5 1.5-4 3.500-4S9 10.500 9 13M11 7.500a1.700 1.700 0 1 0 0-3.400M11.500 9.500c1.500.3 2.500 1.600 2.500 3.500",
  Pipeline: "M2 4h3l3 4h6M2 12h3l3-4M12 6l2 2-2 2",
  Alarms: "M8 2a4 4 0 0 0-4 4c0 4-2 5-2 5h12s-2-1-2-5a4 4 0 0 0-4-4zM6.500 13.500a1.700 1.700 0 0 0 3 0",
  Brokers: "M2 3h12v4H2zM2 9h12v4H2zM4.500 5h.01M4.500 11h.01",
  Partitions: "M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z",
  Reassign: "M2 5h10M9.500 2.500 12 5 9.500 7.500M14 11H4M6.500 8.500 4 11l2.500 2.500",
  Transactions: "M3 8.500 6.500 12 13 4.500",
  Capacity: "M2 13a6 6 0 1 1 12 0M8 12l3-4",
  Users: "M8 7.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM3 14c0-3 2-4.500 5-4.500s5 1.500 5 4.500",
  ACLs: "M8 1.500 13.500 4v4c0 3.500-2.500 5.500-5.500 6.500C5 13.500 2.500 11.500 2.500 8V4z",
  Quotas: "M2 4h7M12 4h2M2 12h2M7 12h7M10.500 2.500v3M5.500 10.500v3",
};
export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${PATHS[name]} fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" /></svg>`;
