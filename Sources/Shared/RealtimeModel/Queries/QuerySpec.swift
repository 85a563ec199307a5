// The specification of a query on a location: an ordering, bounds and a limit, and its wire form.

/// A query: selects and orders the children of a location.
public struct QuerySpec: Sendable, Hashable {
  /// One end of a range.
  public struct Bound: Sendable, Hashable {
    /// The bound's value in the ordering; nil for null. For ``Ordering/key`` it is the child key as a string.
    public var value: LeafValue?
    /// The key that bounds children with an equal value; nil if the bound includes all of them.
    public var key: ChildKey?
    /// Whether a child exactly at the bound is inside the range.
    public var isInclusive: Bool

    /// Makes a bound.
    public init(_ value: LeafValue?, key: ChildKey? = nil, isInclusive: Bool = true) {
      self.value = value
      self.key = key
      self.isInclusive = isInclusive
    }

    /// A lower bound that excludes all children whose value equals `value`, in the form that clients send.
    public static func after(_ value: LeafValue?) -> Bound {
      Bound(value, key: .maximum, isInclusive: false)
    }

    /// An upper bound that excludes all children whose value equals `value`, in the form that clients send.
    public static func before(_ value: LeafValue?) -> Bound {
      Bound(value, key: .minimum, isInclusive: false)
    }
  }

  /// A number of children, counted from one end.
  public enum Limit: Sendable, Hashable {
    /// The first children.
    case first(Int)
    /// The last children.
    case last(Int)

    /// The number.
    public var count: Int {
      switch self {
      case .first(let count), .last(let count): count
      }
    }
  }

  /// The ordering of the children.
  public var ordering: Ordering
  /// The lower bound; nil for none.
  public var start: Bound?
  /// The upper bound; nil for none.
  public var end: Bound?
  /// The maximum number of children; nil for all.
  public var limit: Limit?
  /// Whether the request names ``Ordering/priority`` explicitly. A request without an ordering means the same; only
  /// rules distinguish the two.
  public var namesPriority = false

  /// Makes a query. Without arguments it is the default query.
  public init(ordering: Ordering = .priority, start: Bound? = nil, end: Bound? = nil, limit: Limit? = nil) {
    self.ordering = ordering
    self.start = start
    self.end = end
    self.limit = limit
  }

  /// The default query: all children, by priority.
  public static let `default` = QuerySpec()

  /// Whether the query has neither bounds nor a limit.
  public var showsAll: Bool { start == nil && end == nil && limit == nil }
  /// Whether this is the default query.
  public var isDefault: Bool { showsAll && ordering == .priority }

  // MARK: Wire form

  /// The query's fields on the wire, in ascending order of their names. A nil value is JSON null.
  public var wireFields: [(name: String, value: LeafValue?)] {
    var fields: [(name: String, value: LeafValue?)] = []
    if let end {
      fields.append(("ein", .bool(end.isInclusive)))
      if let key = end.key { fields.append(("en", .string(key.text))) }
      fields.append(("ep", end.value))
    }
    if ordering != .priority || namesPriority { fields.append(("i", .string(ordering.wireText))) }
    if let limit { fields.append(("l", .int(Int64(limit.count)))) }
    if let start {
      fields.append(("sin", .bool(start.isInclusive)))
      if let key = start.key { fields.append(("sn", .string(key.text))) }
      fields.append(("sp", start.value))
    }
    switch limit {
    case .first: fields.append(("vf", .string("l")))
    case .last: fields.append(("vf", .string("r")))
    case nil: break
    }
    return fields
  }

  /// Reads a query's fields. Unknown fields are ignored.
  ///
  /// - Throws: ``RealtimeError`` with status `failure` for a field of a wrong type or a limit that is not positive.
  public init(wireFields fields: some Sequence<(name: String, value: LeafValue?)>) throws(RealtimeError) {
    var values: [String: LeafValue?] = [:]
    for (name, value) in fields { values.updateValue(value, forKey: name) }
    func text(_ name: String) throws(RealtimeError) -> String? {
      guard case .some(let value) = values[name] else { return nil }
      guard case .string(let text)? = value else { throw Self.invalid(name) }
      return text
    }
    func flag(_ name: String) throws(RealtimeError) -> Bool {
      guard case .some(let value) = values[name] else { return true }
      guard case .bool(let flag)? = value else { throw Self.invalid(name) }
      return flag
    }
    let named = try text("i").map { text throws(RealtimeError) in try Ordering(wire: text) }
    ordering = named ?? .priority
    namesPriority = named == .priority
    start = nil
    end = nil
    limit = nil
    if case .some(let value) = values["sp"] {
      start = Bound(value, key: try text("sn").map { ChildKey(bound: $0) }, isInclusive: try flag("sin"))
    }
    if case .some(let value) = values["ep"] {
      end = Bound(value, key: try text("en").map { ChildKey(bound: $0) }, isInclusive: try flag("ein"))
    }
    if case .some(let value) = values["l"] {
      guard case .int(let count)? = value, count > 0, count < 1 << 31 else { throw Self.invalid("l") }
      switch try text("vf") {
      case "l": limit = .first(Int(count))
      case "r": limit = .last(Int(count))
      case nil: limit = start != nil ? .first(Int(count)) : .last(Int(count))
      default: throw Self.invalid("vf")
      }
    }
    for bound in [start, end] {
      if case .deferred? = bound?.value { throw Self.invalid("sp") }
      if ordering == .key, let bound {
        guard case .string? = bound.value else {
          throw RealtimeError(.failure, "Invalid query: a query ordered by key needs strings as bounds")
        }
      }
    }
  }

  private static func invalid(_ field: String) -> RealtimeError {
    RealtimeError(.failure, "Invalid query: unexpected value of \"\(field)\"")
  }
}
