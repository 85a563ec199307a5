/// A type of the Realtime Database's rule language, as far as it is known before evaluation.
enum RealtimeType: String, Hashable, Sendable {
  case boolean
  case number
  case string
  case null
  /// The result of `val()`: a boolean, number, string or null, or an object that only equality accepts.
  case primitive
  /// `auth` and its members.
  case any
  /// A regular expression.
  case pattern = "regular expression"
  case snapshot
  case query
  case list

  /// Whether values of several types are possible, so that evaluation checks the operands.
  var isOpen: Bool { self == .primitive || self == .any }

  /// Whether an operand that must be a string may have this type.
  var mayBeString: Bool { self == .string || isOpen }

  /// Whether an operand that must be a number may have this type.
  var mayBeNumber: Bool { self == .number || isOpen }

  /// Whether `==` accepts an operand of this type.
  var isComparable: Bool {
    switch self {
    case .boolean, .number, .string, .null, .primitive, .any: true
    case .pattern, .snapshot, .query, .list: false
    }
  }
}
