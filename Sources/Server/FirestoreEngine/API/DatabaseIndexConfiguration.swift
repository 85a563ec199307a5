// The index configuration of a database, as `firestore.indexes.json` describes it.

public import FirestoreModel

/// The configured indexes of one database: composite indexes, and overrides of the automatic ones.
public struct DatabaseIndexConfiguration: Sendable, Hashable {
  /// The documents that an index covers.
  public enum Scope: String, Sendable, Hashable, Codable {
    /// The documents of one collection; each collection has separate entries.
    case collection
    /// The documents of all collections with one id.
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
    /// A vector of this dimension, for nearest-neighbor queries. Hearth scans vectors without an index;
    /// strict mode requires one nevertheless.
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

  /// The indexes of one field. They replace the default: all modes in collections, none in collection groups.
  public struct Override: Sendable, Hashable {
    /// A single-field index.
    public struct Index: Sendable, Hashable {
      /// The documents that the index covers.
      public var scope: Scope
      /// How the field is ordered; not a vector.
      public var mode: Mode

      /// Makes a single-field index.
      public init(_ scope: Scope, _ mode: Mode) {
        self.scope = scope
        self.mode = mode
      }
    }

    /// The collection id.
    public var collectionID: String
    /// The field, including nested fields without an override; nil for all fields without an override.
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

  /// Makes a configuration; the default keeps everything automatic.
  public init(indexes: [Index] = [], overrides: [Override] = []) {
    self.indexes = indexes
    self.overrides = overrides
  }
}
