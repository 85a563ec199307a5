// The properties and methods of the Realtime Database's rule language.

/// A method of a snapshot.
enum RealtimeSnapshotMethod: String, Hashable, Sendable, CaseIterable {
  case val
  case child
  case parent
  case hasChild
  /// Without an argument, or with a list of paths.
  case hasChildren
  case exists
  case getPriority
  case isNumber
  case isString
  case isBoolean

  /// The number of arguments, which are strings; `hasChildren` has a list instead.
  var argumentCount: Int { self == .child || self == .hasChild ? 1 : 0 }

  /// The type of the result.
  var result: RealtimeType {
    switch self {
    case .val, .getPriority: .primitive
    case .child, .parent: .snapshot
    case .hasChild, .hasChildren, .exists, .isNumber, .isString, .isBoolean: .boolean
    }
  }
}

/// A method of a string.
enum RealtimeTextMethod: String, Hashable, Sendable, CaseIterable {
  case contains
  case beginsWith
  case endsWith
  case replace
  case toLowerCase
  case toUpperCase
  /// Its argument is a regular expression.
  case matches

  /// The number of arguments.
  var argumentCount: Int {
    switch self {
    case .contains, .beginsWith, .endsWith, .matches: 1
    case .replace: 2
    case .toLowerCase, .toUpperCase: 0
    }
  }

  /// The type of the result.
  var result: RealtimeType {
    switch self {
    case .contains, .beginsWith, .endsWith, .matches: .boolean
    case .replace, .toLowerCase, .toUpperCase: .string
    }
  }
}

/// A property of `query`.
enum RealtimeQueryField: String, Hashable, Sendable, CaseIterable {
  case orderByKey
  case orderByValue
  case orderByPriority
  case orderByChild
  case startAt
  case endAt
  case equalTo
  case limitToFirst
  case limitToLast

  /// The type. Evaluation may also give null for a string or a number.
  var type: RealtimeType {
    switch self {
    case .orderByKey, .orderByValue, .orderByPriority: .boolean
    case .orderByChild: .string
    case .startAt, .endAt, .equalTo: .primitive
    case .limitToFirst, .limitToLast: .number
    }
  }
}
