;;; emacs.el --- What the tests of test_emacs.py share  -*- lexical-binding: t; -*-

(setq make-backup-files nil
      mode-require-final-newline nil
      create-lockfiles nil
      eglot-autoshutdown nil
      ;; A choice is made by the keyboard, not in a menu.
      last-nonmenu-event ?a)

(defvar changes 0 "How often the text changed.")
(defvar said nil "Everything that the user was told.")

(advice-add 'message :before
            (lambda (form &rest values)
              (when form (push (apply #'format-message form values) said))))

(defun until (wanted what)
  "Wait until the function WANTED returns true, for a long time; WHAT says what that means."
  (let ((deadline (+ 30 (float-time))))
    (while (not (funcall wanted))
      (when (> (float-time) deadline)
        (error "Never: %s; %S" what said))
      (accept-process-output nil 0.01))))

(defun visit (path)
  "Visit the file PATH with Frostline."
  (find-file path)
  (apply #'eglot (eglot--guess-contact))
  (add-hook 'after-change-functions (lambda (&rest _) (setq changes (1+ changes))) nil t))

(defun select (text)
  "Return start and end of TEXT, and put point before it."
  (goto-char (point-min))
  (search-forward text)
  (prog1 (list (match-beginning 0) (match-end 0))
    (goto-char (match-beginning 0))))

(defun drafted ()
  "Wait until the draft that was asked for is made or refused."
  (until (lambda () (null frostline--request)) "the server is done"))

(defun undo-once ()
  "Undo as a user does, with one command."
  (undo-boundary)
  (setq last-command nil this-command 'undo)
  (undo))

(defun tell (&rest values)
  "Print the plist VALUES for the test, and end."
  (princ (concat "\n" (json-encode `(:said ,(string-join (reverse said) "\n") ,@values)) "\n"))
  (kill-emacs 0))
