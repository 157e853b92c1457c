;;; frostline-eglot.el --- Frostline through eglot  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: Apache-2.0
;; Package-Requires: ((emacs "28.1") (eglot "1.9"))

;;; Commentary:

;; Load this, visit a file, and `M-x eglot'.  Nothing is bound to a key until you do it:
;;
;;     (global-set-key (kbd "C-c i") frostline-map)
;;
;; eglot speaks with one server in a buffer, so Frostline stands in the place of the language's
;; own one for as long as this is loaded.  While a draft is made, Emacs goes on as ever.

;;; Code:

(require 'eglot)

(defclass frostline-eglot-server (eglot-lsp-server) ()
  :documentation "Frostline's language server.")

(dolist (mode '((python-mode :language-id "python")
                (python-ts-mode :language-id "python")
                (js-mode :language-id "javascript")
                (js-ts-mode :language-id "javascript")
                (typescript-mode :language-id "typescript")
                (typescript-ts-mode :language-id "typescript")
                (tsx-ts-mode :language-id "typescriptreact")
                (go-mode :language-id "go")
                (go-ts-mode :language-id "go")
                (rust-mode :language-id "rust")
                (rust-ts-mode :language-id "rust")
                (java-mode :language-id "java")
                (java-ts-mode :language-id "java")
                (c-mode :language-id "c")
                (c-ts-mode :language-id "c")
                (c++-mode :language-id "cpp")
                (c++-ts-mode :language-id "cpp")))
  (add-to-list 'eglot-server-programs
               `(,mode . (frostline-eglot-server "frostline" "lsp"))))

;; These say whether eglot asks before an edit that the server sends; which one, is up to its age.
(defvar eglot-confirm-server-initiated-edits)
(defvar eglot-confirm-server-edits)

(cl-defmethod eglot-handle-request
  ((server frostline-eglot-server) (_method (eql workspace/applyEdit)) &rest _params)
  "Make the edit of a draft as one undo step, and without a question."
  (frostline--undo-boundary server)
  (prog1 (let ((eglot-confirm-server-initiated-edits nil)
               (eglot-confirm-server-edits nil))
           (cl-call-next-method))
    (frostline--undo-boundary server)
    ;; eglot tells of a change when the user pauses; a draft is only in when the server has heard of it.
    (dolist (buffer (eglot--managed-buffers server))
      (with-current-buffer buffer (eglot--signal-textDocument/didChange)))))

(defun frostline--undo-boundary (server)
  "End the undo step that is under way in the buffers of SERVER."
  (dolist (buffer (eglot--managed-buffers server))
    (with-current-buffer buffer (undo-boundary))))

(defvar-local frostline--request nil
  "The number of the draft that is being made for this buffer, or nil.")

(defun frostline--run (command beg end)
  "Have the server run COMMAND on the text from BEG to END."
  (let ((server (eglot-current-server))
        (buffer (current-buffer)))
    (unless (cl-typep server 'frostline-eglot-server)
      (user-error "Frostline does not run in this buffer; M-x eglot starts it"))
    ;; The server must know the text that the range is of.
    (eglot--signal-textDocument/didChange)
    (message "Frostline is denoising")
    ;; jsonrpc does not say what number a request gets: the next one.
    (setq frostline--request (1+ (jsonrpc--next-request-id server)))
    (let ((done (lambda (&rest _)
                  (when (buffer-live-p buffer)
                    (with-current-buffer buffer (setq frostline--request nil))))))
      (jsonrpc-async-request
       server :workspace/executeCommand
       `(:command ,command
         :arguments [(:uri ,(plist-get (eglot--TextDocumentIdentifier) :uri)
                      :range (:start ,(eglot--pos-to-lsp-position beg)
                              :end ,(eglot--pos-to-lsp-position end)))])
       :timeout 600 :success-fn done :error-fn done :timeout-fn done))))

(defun frostline-rewrite (beg end)
  "Rewrite the region from BEG to END."
  (interactive "r")
  (frostline--run "frostline.rewrite" beg end))

(defun frostline-fill ()
  "Fill the gap at point."
  (interactive)
  (frostline--run "frostline.fill" (point) (point)))

(defun frostline-body ()
  "Fill the body of the function around point, or all bodies still to be written."
  (interactive)
  (frostline--run "frostline.body" (point) (point)))

(defun frostline-cancel ()
  "Stop denoising in this buffer."
  (interactive)
  (when frostline--request
    (jsonrpc-notify (eglot-current-server) :$/cancelRequest (list :id frostline--request))))

(defvar frostline-map
  (let ((map (make-sparse-keymap)))
    (define-key map "a" #'eglot-code-actions)
    (define-key map "r" #'frostline-rewrite)
    (define-key map "i" #'frostline-fill)
    (define-key map "b" #'frostline-body)
    (define-key map "c" #'frostline-cancel)
    map)
  "Keys for Frostline, bound to no prefix by itself.")

(provide 'frostline-eglot)
;;; frostline-eglot.el ends here
