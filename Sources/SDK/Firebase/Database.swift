// Exports FirebaseDatabase from `import Firebase`, type by type. Both databases have a type
// `ServerTimestamp`, which would be ambiguous if both modules were exported. As with Google's SDK, an
// explicit import of one database module makes its `ServerTimestamp` available.

@_exported import FirebaseCore
@_exported import enum FirebaseDatabase.CachePersistenceError
@_exported import class FirebaseDatabase.DataSnapshot
@_exported import enum FirebaseDatabase.DataEventType
@_exported import class FirebaseDatabase.Database
@_exported import typealias FirebaseDatabase.DatabaseCompletion
@_exported import typealias FirebaseDatabase.DatabaseHandle
@_exported import let FirebaseDatabase.DatabasePersistenceErrorDomain
@_exported import class FirebaseDatabase.DatabaseQuery
@_exported import class FirebaseDatabase.DatabaseReference
@_exported import class FirebaseDatabase.MutableData
@_exported import class FirebaseDatabase.ServerValue
@_exported import class FirebaseDatabase.TransactionResult
@_exported import class FirebaseSharedSwift.FirebaseDataDecoder
@_exported import class FirebaseSharedSwift.FirebaseDataEncoder
