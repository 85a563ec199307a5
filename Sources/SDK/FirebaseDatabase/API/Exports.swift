// Exports `Database.Encoder` and `Database.Decoder` with FirebaseDatabase, also for apps with MemberImportVisibility.

@_exported public import class FirebaseSharedSwift.FirebaseDataDecoder
@_exported public import class FirebaseSharedSwift.FirebaseDataEncoder
