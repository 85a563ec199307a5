// The events that the sync tree delivers to observers.

import RealtimeModel

/// The kinds of events that a registration receives.
struct EventInterest: OptionSet, Sendable {
  let rawValue: Int

  static let childAdded = EventInterest(rawValue: 1 << 0)
  static let childRemoved = EventInterest(rawValue: 1 << 1)
  static let childChanged = EventInterest(rawValue: 1 << 2)
  static let childMoved = EventInterest(rawValue: 1 << 3)
  static let value = EventInterest(rawValue: 1 << 4)
}

/// One observer of one query.
struct ObserverRegistration: Equatable, Sendable {
  /// Identifies the observer in every call.
  let id: UInt
  /// The kinds of events to deliver. An observer that only keeps data synchronized has none.
  let interest: EventInterest
}

/// An event for an observer.
struct DataEvent {
  enum Content {
    /// A child changed. `previous` is the key of the preceding sibling in the query's order.
    case child(EventInterest, ChildKey, Node, previous: ChildKey?)
    /// The complete value.
    case value(Node)
    /// The observation ended with an error.
    case cancelled(RealtimeError)
  }

  let registration: ObserverRegistration
  /// The location that is observed.
  let path: Path
  let ordering: Ordering
  let content: Content
}
