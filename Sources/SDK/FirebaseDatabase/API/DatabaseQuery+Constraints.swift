// Adds constraints to a query. Each method returns a new query, and stops the program for a combination that the
// product rejects.

import FirebaseCore
import Foundation
import RealtimeModel

extension DatabaseQuery {
  private func with(_ parameters: QueryParameters) -> DatabaseQuery {
    DatabaseQuery(repository: optionalRepository, path: path, parameters: parameters)
  }

  /// The first children, at most `limit` of them.
  @discardableResult
  public func queryLimited(toFirst limit: UInt) -> DatabaseQuery {
    with(parameters.limited(to: limit, fromStart: true, method: "queryLimitedToFirst:"))
  }

  /// The last children, at most `limit` of them.
  @discardableResult
  public func queryLimited(toLast limit: UInt) -> DatabaseQuery {
    with(parameters.limited(to: limit, fromStart: false, method: "queryLimitedToLast:"))
  }

  /// Ordered by the value at a path below each child.
  @discardableResult
  public func queryOrdered(byChild key: String) -> DatabaseQuery {
    with(parameters.ordered(byChild: key))
  }

  /// Ordered by key.
  @discardableResult
  public func queryOrderedByKey() -> DatabaseQuery {
    with(parameters.ordered(by: .key, method: "queryOrderedByKey"))
  }

  /// Ordered by the children's own values.
  @discardableResult
  public func queryOrderedByValue() -> DatabaseQuery {
    with(parameters.ordered(by: .value, method: "queryOrderedByValue"))
  }

  /// Ordered by priority, which is the order without any call.
  @discardableResult
  public func queryOrderedByPriority() -> DatabaseQuery {
    with(parameters.ordered(by: .priority, method: "queryOrderedByPriority"))
  }

  /// Starts at a value.
  @discardableResult
  public func queryStarting(atValue startValue: Any?) -> DatabaseQuery {
    with(parameters.starting(startValue, nil, isInclusive: true, method: "queryStartingAtValue:"))
  }

  /// Starts at a value, and within that value at a key.
  @discardableResult
  public func queryStarting(atValue startValue: Any?, childKey: String?) -> DatabaseQuery {
    with(
      parameters.starting(startValue, childKey, isInclusive: true, method: "queryStartingAtValue:childKey:"))
  }

  /// Starts after a value.
  @discardableResult
  public func queryStarting(afterValue startAfterValue: Any?) -> DatabaseQuery {
    with(parameters.starting(startAfterValue, nil, isInclusive: false, method: "queryStartingAfterValue:"))
  }

  /// Starts after a key within a value.
  @discardableResult
  public func queryStarting(afterValue startAfterValue: Any?, childKey: String?) -> DatabaseQuery {
    with(
      parameters.starting(
        startAfterValue, childKey, isInclusive: false, method: "queryStartingAfterValue:childKey:"))
  }

  /// Ends at a value.
  @discardableResult
  public func queryEnding(atValue endValue: Any?) -> DatabaseQuery {
    with(parameters.ending(endValue, nil, isInclusive: true, method: "queryEndingAtValue:"))
  }

  /// Ends at a value, and within that value at a key.
  @discardableResult
  public func queryEnding(atValue endValue: Any?, childKey: String?) -> DatabaseQuery {
    with(parameters.ending(endValue, childKey, isInclusive: true, method: "queryEndingAtValue:childKey:"))
  }

  /// Ends before a value.
  @discardableResult
  public func queryEnding(beforeValue endValue: Any?) -> DatabaseQuery {
    with(parameters.ending(endValue, nil, isInclusive: false, method: "queryEndingBeforeValue:"))
  }

  /// Ends before a key within a value.
  @discardableResult
  public func queryEnding(beforeValue endValue: Any?, childKey: String?) -> DatabaseQuery {
    with(
      parameters.ending(endValue, childKey, isInclusive: false, method: "queryEndingBeforeValue:childKey:"))
  }

  /// The children with exactly this value.
  @discardableResult
  public func queryEqual(toValue value: Any?) -> DatabaseQuery {
    with(parameters.equal(value, nil, method: "queryEqualToValue:"))
  }

  /// The child with exactly this value and key.
  @discardableResult
  public func queryEqual(toValue value: Any?, childKey: String?) -> DatabaseQuery {
    with(parameters.equal(value, childKey, method: "queryEqualToValue:childKey:"))
  }
}
