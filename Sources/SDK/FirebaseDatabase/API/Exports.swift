// Importing FirebaseDatabase is enough to use `Database.Encoder` and `Database.Decoder`, also where the
// members of a module are visible only to those who import it.

@_exported public import class FirebaseSharedSwift.FirebaseDataDecoder
@_exported public import class FirebaseSharedSwift.FirebaseDataEncoder
