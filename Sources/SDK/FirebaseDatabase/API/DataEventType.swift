// The types of events that an observer of data can receive.

/// The kind of event that an observer receives.
public enum DataEventType: Int, Sendable {
  /// A child was added, or existed when the observation began.
  case childAdded = 0
  /// A child was removed, or left the query's window.
  case childRemoved = 1
  /// A child's value changed.
  case childChanged = 2
  /// A child's position in the query's order may have changed.
  case childMoved = 3
  /// The complete value changed, or is known for the first time.
  case value = 4

  var interest: EventInterest {
    switch self {
    case .childAdded: .childAdded
    case .childRemoved: .childRemoved
    case .childChanged: .childChanged
    case .childMoved: .childMoved
    case .value: .value
    }
  }
}
