// The index configuration of a database, as `firestore.indexes.json` describes it.

public import FirestoreModel

/// The configured indexes of one database: its composite indexes, and overrides of the automatic single-field
/// indexes.
public struct DatabaseIndexConfiguration: Sendable, Hashable {
  /// The documents that an index covers.
  public enum Scope: String, Sendable, Hashable, Codable {
    /// The documents of one collection. Each collection with the id has separate entries, and a query reads
    /// one collection.
    case collection
    /// The documents of all collections with the same id, in common entries.
    case collectionGroup
  }

  /// How an index orders a field.
  public enum Mode: Sendable, Hashable {
    /// By value, ascending.
    case ascending
    /// By value, descending.
    case descending
    /// One entry for each element of an array.
    case contains
    /// A vector of this dimension, for nearest-neighbor queries. Hearth executes these queries without an
    /// index. In strict mode (`Options.requiresIndexes`) it rejects them if no vector index is configured.
    case vector(dimension: Int)
  }

  /// One field of an index.
  public struct Field: Sendable, Hashable {
    /// The field.
    public var path: FieldPath
    /// How it is ordered.
    public var mode: Mode

    /// Makes a field of an index.
    public init(_ path: FieldPath, _ mode: Mode) {
      self.path = path
      self.mode = mode
    }
  }

  /// A composite index.
  public struct Index: Sendable, Hashable {
    /// The collection id.
    public var collectionID: String
    /// The documents that the index covers.
    public var scope: Scope
    /// The fields, without `__name__`.
    public var fields: [Field]
    /// The direction of `__name__`, the last field of every index.
    public var nameDirection: StructuredQuery.Direction

    /// Makes an index. The direction of `__name__` defaults to that of the last field.
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

  /// The indexes of one field. They replace the default indexes: ascending, descending and array-contains for
  /// collections, and none for collection groups.
  public struct Override: Sendable, Hashable {
    /// A single-field index.
    public struct Index: Sendable, Hashable {
      /// The documents that the index covers.
      public var scope: Scope
      /// How the field is ordered. A vector is not allowed.
      public var mode: Mode

      /// Makes a single-field index.
      public init(_ scope: Scope, _ mode: Mode) {
        self.scope = scope
        self.mode = mode
      }
    }

    /// The collection id.
    public var collectionID: String
    /// The field. The override also applies to its nested fields that have no override. Nil for all fields of
    /// the collection group without an override.
    public var field: FieldPath?
    /// The field's indexes; empty to exempt it.
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
  /// The single-field overrides.
  public var overrides: [Override]

  /// Makes a configuration. By default it has only the automatic indexes.
  public init(indexes: [Index] = [], overrides: [Override] = []) {
    self.indexes = indexes
    self.overrides = overrides
  }
}
