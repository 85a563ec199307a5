// Parses the query parameters of a REST request: `orderBy`, its bounds and its limits.

import JSON
import NIOHTTP1
import Ports
import RealtimeModel

enum RESTQuery {
  private static let bounds = ["startAt", "startAfter", "endAt", "endBefore", "equalTo"]
  private static let limits = ["limitToFirst", "limitToLast"]

  /// Returns the query of a request's parameters; nil if they describe none.
  ///
  /// - Parameter isShallow: whether the request is for keys only. Bounds and limits then do not require
  ///   `orderBy`, because keys are always ordered by key. A key may then be unquoted.
  /// - Throws: ``RESTError`` with Firebase's texts.
  static func query(_ target: RequestTarget, isShallow: Bool) throws(RESTError) -> QuerySpec? {
    let isFiltered = (bounds + limits).contains { target[$0] != nil }
    guard target["orderBy"] != nil || isFiltered else { return nil }
    var query = QuerySpec()
    if let orderBy = target["orderBy"] {
      query.ordering = try ordering(orderBy)
      query.namesPriority = query.ordering == .priority
    } else if isShallow {
      query.ordering = .key
    } else {
      throw RESTError(.badRequest, "orderBy must be defined when other query parameters are defined")
    }
    try readBounds(target, isShallow, &query)
    if target["limitToFirst"] != nil, target["limitToLast"] != nil {
      throw RESTError(.badRequest, "Only one of limitToFirst and limitToLast may be specified")
    }
    if let text = target["limitToFirst"] { query.limit = .first(try count(text, "limitToFirst")) }
    if let text = target["limitToLast"] { query.limit = .last(try count(text, "limitToLast")) }
    return query
  }

  private static func ordering(_ text: String) throws(RESTError) -> Ordering {
    let invalid = RESTError(.badRequest, "orderBy must be a valid JSON encoded path")
    guard let name = (try? JSONValue(json: text))?.string, !name.isEmpty else { throw invalid }
    switch name {
    case "$key": return .key
    case "$value": return .value
    case "$priority": return .priority
    default:
      guard let path = try? Path(validating: name), !path.isRoot else { throw invalid }
      return .child(path)
    }
  }

  private static func readBounds(
    _ target: RequestTarget, _ isShallow: Bool, _ query: inout QuerySpec
  ) throws(RESTError) {
    let isByKey = query.ordering == .key
    func bound(_ name: String) throws(RESTError) -> QuerySpec.Bound? {
      guard let text = target[name] else { return nil }
      let bound = try Self.bound(text, name, mayBeBare: isShallow, isKey: target["orderBy"] == nil)
      if isByKey {
        guard case .string? = bound.value, bound.key == nil else {
          throw RESTError(.badRequest, "\(name) must be a string when ordering by key")
        }
      }
      return bound
    }
    if target["equalTo"] != nil {
      guard bounds.dropLast().allSatisfy({ target[$0] == nil }) else {
        throw RESTError(.badRequest, "equalTo cannot be specified in addition to startAt or endAt")
      }
      query.start = try bound("equalTo")
      query.end = query.start
      return
    }
    if target["startAt"] != nil, target["startAfter"] != nil {
      throw RESTError(.badRequest, "Only one of startAt and startAfter may be specified")
    }
    if target["endAt"] != nil, target["endBefore"] != nil {
      throw RESTError(.badRequest, "Only one of endAt and endBefore may be specified")
    }
    if let bound = try bound("startAt") { query.start = bound }
    if let bound = try bound("endAt") { query.end = bound }
    if var bound = try bound("startAfter") {
      if !isByKey, bound.key == nil { bound.key = .maximum }
      bound.isInclusive = false
      query.start = bound
    }
    if var bound = try bound("endBefore") {
      if !isByKey, bound.key == nil { bound.key = .minimum }
      bound.isInclusive = false
      query.end = bound
    }
  }

  /// Parses `value` or `value,"key"`.
  ///
  /// - Parameters:
  ///   - mayBeBare: whether a key may be unquoted.
  ///   - isKey: whether an unquoted value is a key, even if it looks like a number.
  private static func bound(
    _ text: String, _ name: String, mayBeBare: Bool, isKey: Bool
  ) throws(RESTError) -> QuerySpec.Bound {
    let invalid = RESTError(.badRequest, "\(name) must be a valid JSON encoded value")
    let result: Result<QuerySpec.Bound, JSONError> = Array(text.utf8).withUnsafeBytes { raw in
      do throws(JSONError) {
        var reader = try JSONReader(unsafeBytes: raw)
        let value = try reader.readNode(.read)
        if case .children = value.content { throw JSONError(.unexpectedType, at: 0) }
        var bound = QuerySpec.Bound(value.leafValue)
        if try reader.consume(UInt8(ascii: ",")) { bound.key = ChildKey(bound: try reader.readString()) }
        try reader.finish()
        return .success(bound)
      } catch {
        return .failure(error)
      }
    }
    switch result {
    case .success(let bound):
      if case .deferred? = bound.value { throw invalid }
      if case .string? = bound.value { return bound }
      return mayBeBare && isKey && ChildKey.isValid(text) ? QuerySpec.Bound(.string(text)) : bound
    case .failure:
      guard mayBeBare, ChildKey.isValid(text) else { throw invalid }
      return QuerySpec.Bound(.string(text))
    }
  }

  private static func count(_ text: String, _ name: String) throws(RESTError) -> Int {
    guard let count = Int(text), count > 0, count < 1 << 31 else {
      throw RESTError(.badRequest, "\(name) must be a positive integer")
    }
    return count
  }
}
