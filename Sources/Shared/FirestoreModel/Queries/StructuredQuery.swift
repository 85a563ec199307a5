// A structured query as in the API, before validation and normalization.

/// The collections, filter, order, cursors and limits of a query. `Query` adds the parent.
public struct StructuredQuery: Hashable, Sendable {
  /// The collections to search.
  public struct CollectionSelector: Hashable, Sendable {
    /// The collection id; empty selects all collections.
    public var collectionID: String
    /// Whether the selector includes collections at any depth below the parent, or only direct children.
    public var allDescendants: Bool

    /// Makes a selector.
    public init(_ collectionID: String, allDescendants: Bool = false) {
      self.collectionID = collectionID
      self.allDescendants = allDescendants
    }

    /// Whether the collection ids have the same bytes and the depth is the same.
    public static func == (a: CollectionSelector, b: CollectionSelector) -> Bool {
      a.collectionID.hasSameUTF8(as: b.collectionID) && a.allDescendants == b.allDescendants
    }

    /// Hashes what `==` compares.
    public func hash(into hasher: inout Hasher) {
      collectionID.hashUTF8(into: &hasher)
      hasher.combine(allDescendants)
    }
  }

  /// A direction of order.
  public enum Direction: Hashable, Sendable {
    /// Least first.
    case ascending
    /// Greatest first.
    case descending

    /// The other direction.
    public var reversed: Direction { self == .ascending ? .descending : .ascending }
  }

  /// One field to order by.
  public struct Order: Hashable, Sendable {
    /// The field, or `__name__`.
    public var field: FieldPath
    /// The direction.
    public var direction: Direction

    /// Makes an order.
    public init(_ field: FieldPath, _ direction: Direction = .ascending) {
      self.field = field
      self.direction = direction
    }
  }

  /// The fields to return; nil for all, empty for names only.
  public var select: FieldMask?
  /// The collections to search: one selector, or none for all collections under the parent.
  public var from: [CollectionSelector]
  /// The condition.
  public var filter: Filter?
  /// The explicit order.
  public var orderBy: [Order]
  /// Where to start: `before` is inclusive.
  public var startAt: Cursor?
  /// Where to end: `before` is exclusive.
  public var endAt: Cursor?
  /// The number of results to skip.
  public var offset: Int
  /// The maximum number of results; nil for all.
  public var limit: Int?
  /// A nearest-neighbour search over the results of the query.
  public var findNearest: FindNearest?

  /// Makes a query.
  public init(
    from: [CollectionSelector] = [], filter: Filter? = nil, orderBy: [Order] = [], startAt: Cursor? = nil,
    endAt: Cursor? = nil, offset: Int = 0, limit: Int? = nil, select: FieldMask? = nil,
    findNearest: FindNearest? = nil
  ) {
    self.select = select
    self.from = from
    self.filter = filter
    self.orderBy = orderBy
    self.startAt = startAt
    self.endAt = endAt
    self.offset = offset
    self.limit = limit
    self.findNearest = findNearest
  }
}

/// A position in a query's order: a prefix of the order's values, before or after the documents that have them.
public struct Cursor: Hashable, Sendable {
  /// Values for the first fields of the normalized order. The value for `__name__` is a reference.
  public var values: [Value]
  /// Whether the position is directly before the documents with these values; otherwise it is directly after them.
  public var before: Bool

  /// Makes a cursor.
  public init(_ values: [Value], before: Bool) {
    self.values = values
    self.before = before
  }
}

/// A query over the collections of a root or document.
public struct Query: Hashable, Sendable {
  /// The root or document whose collections are searched.
  public var parent: ParentName
  /// The query, without its parent.
  public var structured: StructuredQuery

  /// Makes a query.
  public init(parent: ParentName, _ structured: StructuredQuery) {
    self.parent = parent
    self.structured = structured
  }
}
