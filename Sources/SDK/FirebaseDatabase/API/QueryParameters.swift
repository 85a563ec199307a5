// The parameters of a query, and the rules for combining them.
//
// Invariant: parameters are valid. A combination that Firebase rejects stops the program where the app builds
// it, as in Google's SDK.

import FirebaseCore
import RealtimeModel

/// The order, bounds and limit of a query, as the app set them.
struct QueryParameters: Sendable {
  private var ordering: Ordering?
  private var start: QuerySpec.Bound?
  private var end: QuerySpec.Bound?
  private var isEqual = false
  private var limit: QuerySpec.Limit?

  /// The query with these parameters.
  var spec: QuerySpec {
    var spec = QuerySpec(ordering: ordering ?? .priority, start: start, end: end, limit: limit)
    if spec.ordering == .key { return spec }
    // An exclusive bound without a key excludes all children with its value. So the wire form begins after
    // that value, or ends before it.
    if let start, !start.isInclusive, start.key == nil { spec.start = .after(start.value) }
    if let end, !end.isInclusive, end.key == nil { spec.end = .before(end.value) }
    return spec
  }

  private static func failInvalidArgument(_ method: String, _ reason: String) -> Never {
    usageException("InvalidQueryParameter", "(\(method)) \(reason)")
  }

  // MARK: Order

  func ordered(by new: Ordering, method: String) -> QueryParameters {
    guard ordering == nil else {
      QueryParameters.failInvalidArgument(method, "Cannot use multiple queryOrderedBy calls!")
    }
    var result = self
    result.ordering = new
    result.check(method)
    return result
  }

  func ordered(byChild text: String) -> QueryParameters {
    let method = "queryOrderedByChild:"
    switch text {
    case "$key", ".key": QueryParameters.failInvalidArgument(method, "Use queryOrderedByKey: instead!")
    case "$priority", ".priority":
      QueryParameters.failInvalidArgument(method, "Use queryOrderedByPriority: instead!")
    case "$value", ".value": QueryParameters.failInvalidArgument(method, "Use queryOrderedByValue: instead!")
    default: break
    }
    let path = PathRules.reference("/" + text, below: Path(keys: [ChildKey("-")]), method: method)
      .droppingFirst
    guard !path.isRoot else {
      QueryParameters.failInvalidArgument(method, "An empty path is used. Use queryOrderedByValue: instead!")
    }
    return ordered(by: .child(path), method: method)
  }

  // MARK: Limit

  func limited(to count: UInt, fromStart: Bool, method: String) -> QueryParameters {
    guard limit == nil else {
      QueryParameters.failInvalidArgument(method, "Can't call queryLimited if a limit was previously set.")
    }
    guard count > 0 else { QueryParameters.failInvalidArgument(method, "Limit can't be zero") }
    guard count < 1 << 31 else {
      QueryParameters.failInvalidArgument(method, "Limit must be less than 2,147,483,647")
    }
    var result = self
    result.limit = fromStart ? .first(Int(count)) : .last(Int(count))
    return result
  }

  // MARK: Bounds

  func starting(_ value: Any?, _ childKey: String?, isInclusive: Bool, method: String) -> QueryParameters {
    guard start == nil else {
      QueryParameters.failInvalidArgument(
        method, isEqual ? "Cannot combine queryEqual with queryStarting" : "Can't call queryStarting twice")
    }
    var result = self
    result.start = bound(value, childKey, isInclusive: isInclusive, method: method)
    result.check(method)
    return result
  }

  func ending(_ value: Any?, _ childKey: String?, isInclusive: Bool, method: String) -> QueryParameters {
    guard end == nil else {
      QueryParameters.failInvalidArgument(
        method, isEqual ? "Cannot combine queryEqual with queryEnding" : "Can't call queryEnding twice")
    }
    var result = self
    result.end = bound(value, childKey, isInclusive: isInclusive, method: method)
    result.check(method)
    return result
  }

  func equal(_ value: Any?, _ childKey: String?, method: String) -> QueryParameters {
    guard start == nil, end == nil else {
      QueryParameters.failInvalidArgument(
        method,
        isEqual
          ? "Can't call queryEqual twice" : "Cannot combine queryEqual with queryStarting or queryEnding")
    }
    var result = self
    result.start = bound(value, childKey, isInclusive: true, method: method)
    result.end = result.start
    result.isEqual = true
    result.check(method)
    return result
  }

  private func bound(_ value: Any?, _ childKey: String?, isInclusive: Bool, method: String) -> QuerySpec.Bound
  {
    if let childKey, !ChildKey.isValid(childKey) {
      usageException("InvalidKeyValidation", "(\(method)) \(childKey) is not a valid key")
    }
    let node: Node
    do {
      node = try ValueReader.node(value)
    } catch {
      QueryParameters.failInvalidArgument(method, error.message)
    }
    if case .children = node.content {
      QueryParameters.failInvalidArgument(method, "A bound is nil, a string, a number or a boolean")
    }
    if case .deferred? = node.leafValue {
      QueryParameters.failInvalidArgument(method, "A server value cannot be a bound")
    }
    return QuerySpec.Bound(node.leafValue, key: childKey.map { ChildKey($0) }, isInclusive: isInclusive)
  }

  /// Rejects bounds that do not match the order. It is called after each change of a bound or the order, so
  /// that the order of the calls does not matter.
  private func check(_ method: String) {
    for bound in [start, end] {
      guard let bound else { continue }
      switch ordering ?? .priority {
      case .key:
        guard case .string? = bound.value, bound.key == nil else {
          QueryParameters.failInvalidArgument(
            method, "When ordering by key, bounds must be strings, and without a child key")
        }
      case .priority:
        if case .bool? = bound.value {
          QueryParameters.failInvalidArgument(
            method, "When ordering by priority, bounds must be nil, numbers or strings")
        }
      case .value, .child: break
      }
    }
  }
}
