// What `import Firebase` gives of Cloud Firestore.

@_exported import FirebaseFirestore
