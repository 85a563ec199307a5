// Which indexes a database should have beside, or instead of, the automatic ones: what firestore.indexes.json says.

public import FirestoreModel

/// The indexes of one database that somebody chose.
public struct IndexConfiguration: Sendable, Hashable {
  /// Where the documents of an index lie.
  public enum Scope: String, Sendable, Hashable, Codable {
    /// In one collection: each has entries of its own.
    case collection
    /// In all collections of one id.
    case collectionGroup
  }

  /// How an index keeps a field.
  public enum Mode: Sendable, Hashable {
    /// By value, least first.
    case ascending
    /// By value, greatest first.
    case descending
    /// One entry for each element of an array.
    case contains
    /// A vector of this dimension, for nearest-neighbour queries. Hearth goes over vectors without an index; strict mode
    /// asks for one nevertheless.
    case vector(dimension: Int)
  }

  /// One field of an index.
  public struct Field: Sendable, Hashable {
    /// The field.
    public var path: FieldPath
    /// How it is kept.
    public var mode: Mode

    /// Makes a field of an index.
    public init(_ path: FieldPath, _ mode: Mode) {
      self.path = path
      self.mode = mode
    }
  }

  /// A composite index.
  public struct Index: Sendable, Hashable {
    /// The collections' id.
    public var collectionID: String
    /// Where the documents lie.
    public var scope: Scope
    /// The fields, without `__name__`.
    public var fields: [Field]
    /// The direction of `__name__`, which ends every index.
    public var nameDirection: StructuredQuery.Direction

    /// Makes an index; without a direction of `__name__` it is that of the last field.
    public init(
      _ collectionID: String, _ scope: Scope, _ fields: [Field],
      nameDirection: StructuredQuery.Direction? = nil
    ) {
      self.collectionID = collectionID
      self.scope = scope
      self.fields = fields
      self.nameDirection = nameDirection ?? (fields.last?.mode == .descending ? .descending : .ascending)
    }
  }

  /// What is indexed of one field, instead of everything in collections and nothing in collection groups.
  public struct Override: Sendable, Hashable {
    /// An index of the field alone.
    public struct Index: Sendable, Hashable {
      /// Where the documents lie.
      public var scope: Scope
      /// How the field is kept; no vector.
      public var mode: Mode

      /// Makes an index of a field.
      public init(_ scope: Scope, _ mode: Mode) {
        self.scope = scope
        self.mode = mode
      }
    }

    /// The collections' id.
    public var collectionID: String
    /// The field, with all fields inside that have no override of their own; nil for all fields without one.
    public var field: FieldPath?
    /// Its indexes; none to exempt it.
    public var indexes: [Index]

    /// Makes an override.
    public init(_ collectionID: String, _ field: FieldPath?, _ indexes: [Index]) {
      self.collectionID = collectionID
      self.field = field
      self.indexes = indexes
    }
  }

  /// The composite indexes.
  public var indexes: [Index]
  /// The overrides of single fields.
  public var overrides: [Override]

  /// Makes a configuration; by default the one that leaves everything automatic.
  public init(indexes: [Index] = [], overrides: [Override] = []) {
    self.indexes = indexes
    self.overrides = overrides
  }
}
